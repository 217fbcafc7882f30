package proxy

import "time"

// sameAttempt is for how long after the answer an allowed address that could not be reached lets the other one pass. Programs
// try it at once.
const sameAttempt = 5 * time.Second

// madeAgain is for how long one that was interrupted is waited for: a question about another host stops its thread for as long
// as a person takes.
const madeAgain = 2 * time.Minute

// unreached is an attempt that the callback has allowed and whose dial has failed.
type unreached struct {
	was4        bool
	interrupted bool // by the thread's own signal, which makes the call again (signal(7))
	until       time.Time
}

// failedOnce notes that the dial of what the callback has allowed has failed, or was interrupted.
func (c *Capture) failedOnce(a attempt, is4, interrupted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unreached) >= maxAttempts || c.unreached == nil {
		c.unreached = map[attempt]unreached{}
	}
	stands := sameAttempt
	if interrupted {
		stands = madeAgain
	}
	c.unreached[a] = unreached{is4, interrupted, time.Now().Add(stands)}
}

// answered tells whether a connection is the second half of one that the callback has allowed and that came to nothing: to the
// address of the other family of the same name, by the same thread, because the first could not be reached, or the very same
// call. That is one wish, and one question. It holds for one connection; whole tells that nothing of it was tried yet.
func (c *Capture) answered(a attempt, is4 bool) (yes, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, ok := c.unreached[a]
	if !ok || first.was4 == is4 && !first.interrupted {
		return false, false
	}
	delete(c.unreached, a)
	return time.Now().Before(first.until), first.interrupted && first.was4 == is4
}
