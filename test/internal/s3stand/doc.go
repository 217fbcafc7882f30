// Package s3stand answers like a few AWS services, S3 before all, and believes no request that is not signed.
//
// Its verifier is written from AWS's documents alone ("Signature Version 4 signing process", "Authenticating Requests: Using
// the Authorization Header", "... Using Query Parameters") and shares no code with what srt signs with, so that the two
// hold each other to what the documents say. It knows the real key and nothing of the fakes.
//
// What belongs here: the check of a signature (verify.go, canonical.go), what arrived (server.go), and just enough of the
// services for their clients to go on (objects.go, multipart.go, services.go). What does not: srt, and any sandbox.
package s3stand
