// Package decider is the proxy of the command srt proxy: it forwards HTTP requests of a workload that runs elsewhere, each
// only after an external process, the decider, has allowed that very request (rules PRX-*). Embedders call [Serve].
//
// What belongs here: the protocol of the decider link, the checks before it is asked, and what a verdict does to a request.
// What does not: descriptors, signals and the command line (cmd/srt), the HTTP/1.x engine (proxy/internal/inspect), TLS
// certificates (proxy/mitm), and the check of resolved addresses (package proxy, runtime/policy).
//
// The two ends of the link talk like this; a frame is a 4-byte big-endian length and one JSON object (PRX-30):
//
//	proxy                                              decider
//	{"t":"hello","proto":1}                  ----->
//	                                         <-----    {"t":"hello","proto":1,"allowedDomains":[...],"deniedDomains":[...]}
//	{"t":"req","id":1,"method":"POST",...}   ----->                                            5 s for the first verdict
//	                                         <-----    {"t":"verdict","id":1,"action":"need_body","max":4096}
//	{"t":"body","id":1,"data":"...","cut":true} -->                                            5 s for the second
//	                                         <-----    {"t":"verdict","id":1,"action":"allow",...}
//
// Requests are under way at the same time and verdicts come in any order. Everything fails closed: whatever breaks the
// protocol, and the end of the link, refuses every pending and every later request and ends [Serve] (PRX-60).
//
//	json.go    strict JSON: every value once, nothing guessed          frame.go   frames, read and written
//	hello.go   the decider's hello and its host lists                  verdict.go verdicts
//	book.go    which id may get which verdict: a pure state machine    link.go    the link: its two goroutines, its end
//	ask.go     one request put to the decider, its body included       budget.go  bodies held for inspection
//	target.go  the checks before the decider is asked                  question.go the req frame and its limits
//	edit.go    what an allow does to the header                        answer.go  what a client is told
//	serve.go   accept, tunnels, shutdown                               handle.go  one request
package decider
