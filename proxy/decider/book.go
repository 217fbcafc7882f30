package decider

// forgotten is how far below the newest id a verdict that nothing waits on is no violation any more (PRX-57).
const forgotten = 4096

// stage is what may come next for one id.
type stage uint8

const (
	asked     stage = iota // req is sent: allow, deny or need_body
	reading                // need_body came: deny alone until body is sent (PRX-53)
	bodySent               // allow or deny
	abandoned              // the proxy gave up on it: what comes is dropped until an allow or deny (PRX-57)
)

// slot is one id for which a verdict may come.
type slot struct {
	stage   stage
	needed  bool // need_body was used
	waiting *waiting
}

// book says which verdicts may come. It is pure: no time, no input or output, no lock.
type book struct {
	newest uint64
	slots  map[uint64]*slot
}

func newBook() *book { return &book{slots: map[uint64]*slot{}} }

// ask takes the next id for a request. false: there is none left (PRX-35).
func (b *book) ask(w *waiting) (id uint64, ok bool) {
	if b.newest >= maxInteger {
		return 0, false
	}
	b.newest++
	b.slots[b.newest] = &slot{waiting: w}
	if b.newest > forgotten {
		if old := b.newest - forgotten; b.slots[old] != nil && b.slots[old].stage == abandoned {
			delete(b.slots, old) // what comes for it is dropped all the same
		}
	}
	return b.newest, true
}

// verdict takes note of a verdict and returns who waits for it; nil: it is dropped. The Reason is empty, or the violation;
// then what is returned is the request that it came for, if there is one.
func (b *book) verdict(id uint64, a action) (*waiting, Reason) {
	s := b.slots[id]
	if s == nil {
		if id <= b.newest && b.newest-id >= forgotten {
			return nil, ""
		}
		return nil, reasonNothingWaits(id)
	}
	switch {
	case s.stage == reading && a != actionDeny:
		return s.waiting, reasonEarly
	case a != actionNeedBody:
		delete(b.slots, id)
	case s.stage == bodySent:
		return s.waiting, reasonNoNeedBody
	case s.stage == abandoned && s.needed:
		return nil, reasonSecondNeed
	default:
		s.needed = true
		if s.stage == asked {
			s.stage = reading
		}
	}
	if s.stage == abandoned {
		return nil, ""
	}
	return s.waiting, ""
}

// sendsBody is called just before body is sent. false: the request has been answered meanwhile, and none is.
func (b *book) sendsBody(id uint64) bool {
	s := b.slots[id]
	if s == nil || s.stage != reading {
		return false
	}
	s.stage = bodySent
	return true
}

// giveUp says that nothing waits for the verdict of a request any more. It may have come already.
func (b *book) giveUp(id uint64) {
	s := b.slots[id]
	switch {
	case s == nil:
	case b.newest-id >= forgotten:
		delete(b.slots, id)
	default:
		s.stage, s.waiting = abandoned, nil
	}
}
