package violation

// ring holds the newest Held records, oldest first. The zero value is empty. It grows as it is filled.
type ring struct {
	records []Record
	start   int // of the oldest, once there are Held
}

func (r *ring) add(record Record) {
	if len(r.records) < Held {
		r.records = append(r.records, record)
		return
	}
	r.records[r.start] = record
	r.start = (r.start + 1) % Held
}

func (r *ring) len() int { return len(r.records) }

// newest returns a copy of the newest n, or of as many as there are.
func (r *ring) newest(n int) []Record {
	if n = min(n, len(r.records)); n < 1 {
		return nil
	}
	out := make([]Record, 0, n)
	for i := len(r.records) - n; i < len(r.records); i++ {
		out = append(out, r.records[(r.start+i)%len(r.records)])
	}
	return out
}

func (r *ring) all() []Record { return r.newest(len(r.records)) }

// oldest is the sequence number of the oldest record; without one, a number that none has reached.
func (r *ring) oldest() uint64 {
	if len(r.records) == 0 {
		return ^uint64(0)
	}
	return r.records[r.start%len(r.records)].Seq
}

// where returns the records for which keep is true.
func (r *ring) where(keep func(*Record) bool) (out []Record) {
	for i := range r.records {
		if record := &r.records[(r.start+i)%len(r.records)]; keep(record) {
			out = append(out, *record)
		}
	}
	return out
}
