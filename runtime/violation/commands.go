package violation

import "slices"

// endedTails is of how many commands that have ended a store still has the tail, if they have one.
const endedTails = 64

// commands are the commands that a store knows: those that run and, of the latest launches, those that have ended.
type commands struct {
	known    map[string]*command // by carrier
	launches []string            // the carriers of the latest launches, the last one at the end
	tails    []string            // the carriers of ended commands with a tail, the last one that ended at the end
}

// command is what is known of one attribution key.
type command struct {
	text    string
	named   bool // text is known
	running int  // commands with this key that run
	latest  bool
	tail    ring // of what was refused since the first of them started
}

// register notes a launch. The text of the latest launch with a key is what counts.
func (c *commands) register(carrier, text string) {
	if c.known == nil {
		c.known = map[string]*command{}
	}
	k := c.known[carrier]
	if k == nil {
		k = &command{}
		c.known[carrier] = k
	}
	if k.running == 0 {
		k.tail = ring{}
		c.tails = without(c.tails, carrier)
	}
	if k.latest {
		c.launches = without(c.launches, carrier)
	} else if len(c.launches) == Launches {
		old := c.launches[0]
		c.launches = slices.Delete(c.launches, 0, 1)
		c.known[old].latest = false
		c.drop(old)
	}
	c.launches = append(c.launches, carrier)
	k.text, k.named, k.latest = text, true, true
	k.running++
}

// unregister notes the end of a launch.
func (c *commands) unregister(carrier string) (tail []Record) {
	k := c.known[carrier]
	if k == nil || k.running == 0 {
		return nil
	}
	tail = k.tail.all()
	if k.running--; k.running > 0 {
		return tail
	}
	if len(tail) > 0 {
		if len(c.tails) == endedTails {
			old := c.tails[0]
			c.tails = slices.Delete(c.tails, 0, 1)
			c.known[old].tail = ring{}
			c.drop(old)
		}
		c.tails = append(c.tails, carrier)
	}
	c.drop(carrier)
	return tail
}

// drop forgets a key that neither runs nor is one of the latest launches nor has a tail.
func (c *commands) drop(carrier string) {
	if k := c.known[carrier]; k.running == 0 && !k.latest && k.tail.len() == 0 {
		delete(c.known, carrier)
	}
}

// forget drops every text. What runs, and what has ended with a tail, keeps that.
func (c *commands) forget() {
	c.launches = nil
	for carrier, k := range c.known {
		k.text, k.named, k.latest = "", false, false
		if k.running == 0 && k.tail.len() == 0 {
			delete(c.known, carrier)
		}
	}
}

// textOf is the text of a key, if it is known.
func (c *commands) textOf(carrier string) (text string, known bool) {
	if k := c.known[carrier]; k != nil {
		return k.text, k.named
	}
	return "", false
}

func without(list []string, s string) []string {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
