package decider

import "strconv"

// Reason says why the link to the decider died (PRX-60). It never holds text that the decider or a client sent.
type Reason string

// The reasons of PRX-60 that are fixed texts.
const (
	reasonBadHello    Reason = "bad hello"
	reasonBadVerdict  Reason = "bad verdict frame"
	reasonOversized   Reason = "oversized frame"
	reasonNotUTF8     Reason = "frame is not UTF-8"
	reasonNotJSON     Reason = "frame is not valid JSON"
	reasonNotObject   Reason = "frame is not one JSON object"
	reasonNull        Reason = "null in frame"
	reasonSurrogate   Reason = "lone surrogate in frame"
	reasonDuplicate   Reason = "duplicate key in frame"
	reasonNoNeedBody  Reason = "need_body where none may come"
	reasonSecondNeed  Reason = "a second need_body"
	reasonEarly       Reason = "a verdict other than deny while the body was read"
	reasonIDs         Reason = "request ids exhausted"
	reasonClosedIn    Reason = "decider closed the stream"
	reasonClosedOut   Reason = "decider closed the output stream"
	reasonOwnShutdown Reason = "closed"
)

func reasonNothingWaits(id uint64) Reason {
	return Reason("verdict for id " + strconv.FormatUint(id, 10) + ", which nothing waits on")
}

func reasonNotReading(queued int) Reason {
	return Reason("not reading: " + strconv.Itoa(queued) + " bytes queued")
}

// LinkError is the end of the link to the decider.
type LinkError struct {
	Reason Reason
	// Err is the error of the operating system behind "read error" and "write error"; nil otherwise.
	Err error
}

// Error returns the cause as PRX-5 spells it.
func (e *LinkError) Error() string { return "decider: " + string(e.Reason) }

// Unwrap returns Err.
func (e *LinkError) Unwrap() error { return e.Err }
