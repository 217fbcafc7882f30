package main

import (
	"fmt"
	"strconv"
	"time"
)

// memoryVariable asks for reports of the resident memory (PRX-7).
const memoryVariable = "SRT_PROXY_REPORT_RSS_MS"

// reportMemory reports as often as the variable asks for, until stop is called.
func (p *proxyRun) reportMemory() (stop func()) {
	n, err := strconv.ParseInt(p.getenv(memoryVariable), 10, 32)
	if err != nil || n < 1 {
		return func() {}
	}
	ticker := time.NewTicker(time.Duration(n) * time.Millisecond)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				if bytes, err := residentMemory(); err == nil {
					fmt.Fprintf(p.stderr, "srt-proxy rss %d\n", bytes)
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}
