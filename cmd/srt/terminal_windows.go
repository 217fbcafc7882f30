package main

// terminalSends is always false: a console event reaches srt alone, which passes it on.
func (*app) terminalSends(forwarded, process) bool { return false }
