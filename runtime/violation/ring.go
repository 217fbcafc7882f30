package violation

// ring holds the newest Held records, oldest first; those that repeat another take its place. The zero value is empty. It grows as it is filled.
type ring struct {
	records []Record
	start   int // of the oldest, once there are Held
}

// add adds a record in the place of an equal refusal, if there is one, and gives how many of them there were before.
func (r *ring) add(record Record) (repeats uint64) {
	n := len(r.records)
	for i := n - 1; i >= 0; i-- {
		if !r.at(i).repeats(&record) {
			continue
		}
		record.Repeats = r.at(i).Repeats + 1
		for ; i < n-1; i++ {
			*r.at(i) = *r.at(i + 1)
		}
		*r.at(i) = record
		return record.Repeats
	}
	if n < Held {
		r.records = append(r.records, record)
		return 0
	}
	r.records[r.start] = record
	r.start = (r.start + 1) % Held
	return 0
}

// at is the record with a number, the oldest having 0.
func (r *ring) at(i int) *Record { return &r.records[(r.start+i)%len(r.records)] }

// repeats tells whether a record is of the same refusal of the same command as another: process and time may differ. It is
// so for files alone, where one tool that starts another a thousand times tries the same thing each time; that a host was
// tried again is worth a record of its own (VIO-30).
func (r *Record) repeats(other *Record) bool {
	a, b := &r.Event, &other.Event
	return r.Key == other.Key && r.Key != "" && !a.Operation.network() && a.Operation == b.Operation && a.Target == b.Target && a.Rule == b.Rule && a.Reason == b.Reason &&
		a.Kind == b.Kind && a.CommandID == b.CommandID
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
