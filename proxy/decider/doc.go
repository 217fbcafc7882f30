// Package decider will speak the protocol of an external decider (rules PRX-*) for the command srt proxy.
package decider
