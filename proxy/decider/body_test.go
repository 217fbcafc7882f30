package decider

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPRX42_50_53_Bodies(t *testing.T) {
	for _, test := range []struct {
		name, framing, body string
		max                 int
		data                string
		cut                 bool
	}{
		{"case 15", "Content-Length: 5", "hello", 5, "hello", false},
		{"case 15", "Content-Length: 5", "hello", 4, "hell", true},
		{"more than there is", "Content-Length: 5", "hello", 33554432, "hello", false},
		{"chunked", "Transfer-Encoding: chunked", "2\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: 1\r\n\r\n", 5, "hello", false},
		{"chunked cut", "Transfer-Encoding: chunked", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", 1, "h", true},
		{"empty", "Content-Length: 0", "", 9, "", false},
		{"long", "Content-Length: 300000", strings.Repeat("abc", 100000), 200000, strings.Repeat("abc", 100000)[:200000], true},
	} {
		r := start(t, allowAll)
		c := r.say("POST http://U/ HTTP/1.1\r\nHost: U\r\n" + test.framing + "\r\n\r\n" + test.body)
		r.want("req", 1)
		r.send(`{"t":"verdict","id":1,"action":"need_body","max":%d}`, test.max)
		body := r.want("body", 1)
		data, err := base64.StdEncoding.DecodeString(body["data"].(string))
		if err != nil || string(data) != test.data || (body["cut"] == true) != test.cut || body["cut"] == false {
			t.Errorf("%s: %.100v %v", test.name, body, err)
		}
		if r.up.dialled() != 0 {
			t.Errorf("PRX-50: %s: dialled before the allow", test.name)
		}
		r.allow(1)
		if got := c.hears("POST"); got.status != 200 {
			t.Fatalf("%s: %v", test.name, got)
		}
		got := r.up.last()
		whole := test.body
		if strings.HasPrefix(test.framing, "T") {
			whole = "hello"
		}
		if got.body != whole || !strings.Contains(got.head, test.framing) || strings.Contains(got.head, "X-T") {
			t.Errorf("PRX-50: %s: upstream got %q and %d bytes", test.name, got.head, len(got.body))
		}
	}
	r := start(t, allowAll)
	c := r.say("POST http://U/ HTTP/1.1\r\nHost: U\r\n\r\n")
	r.want("req", 1)
	r.send(`{"t":"verdict","id":1,"action":"need_body","max":5}`)
	if body := r.want("body", 1); body["data"] != "" || len(body) != 3 {
		t.Errorf("PRX-53 no body: %v", body)
	}
	r.send(`{"t":"verdict","id":1,"action":"deny","status":403,"reason":"empty"}`)
	c.refused("PRX-53", 403, "decider", "empty")
}

func TestPRX54_MethodsWithoutBody(t *testing.T) {
	r := start(t, allowAll)
	id := 0
	for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
		id++
		c := r.say(method + " http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 2\r\n\r\nhi")
		r.want("req", id)
		r.send(`{"t":"verdict","id":%d,"action":"need_body","max":5}`, id)
		if got := c.hears(method); got.status != 403 || got.header.Get("X-Deny-Reason") != "bodyless_method_body" {
			t.Errorf("case 16: %s: %v", method, got)
		}
		r.allow(id) // dropped
	}
	c := r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	id++
	r.want("req", id)
	r.send(`{"t":"verdict","id":%d,"action":"need_body","max":5}`, id)
	if body := r.want("body", id); body["data"] != "" || body["cut"] != nil {
		t.Errorf("case 16: %v", body)
	}
	r.allow(id)
	c.hears("GET")
	c = r.say("GET http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 2\r\n\r\nhi")
	id++
	r.want("req", id)
	r.allow(id)
	if got := c.hears("GET"); got.status != 200 || r.up.last().body != "hi" {
		t.Errorf("PRX-54: a plain allow forwards it: %v %q", got, r.up.last().body)
	}
}

func TestPRX53_VerdictsWhileTheBodyIsRead(t *testing.T) {
	request := "POST http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 50\r\n\r\n12345"
	r := start(t, allowAll)
	c := r.say(request)
	r.want("req", 1)
	r.send(`{"t":"verdict","id":1,"action":"need_body","max":50}`)
	r.send(`{"t":"verdict","id":1,"action":"deny","status":413}`)
	c.refused("case 17", 413, "decider", defaultDenial)
	c = r.say(request)
	r.want("req", 2)
	r.send(`{"t":"verdict","id":2,"action":"need_body","max":50}`)
	r.allow(2)
	c.refused("case 17", 503, "decider_unavailable", whyEarly)
	if got := r.ended(); got != "decider: a verdict other than deny while the body was read" {
		t.Errorf("case 17: %q", got)
	}
	if r.up.dialled() != 0 {
		t.Error("something was forwarded")
	}
	r = start(t, allowAll)
	c = r.say("POST http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 1\r\n\r\n1")
	r.want("req", 1)
	r.send(`{"t":"verdict","id":1,"action":"need_body","max":50}`)
	r.want("body", 1)
	r.send(`{"t":"verdict","id":1,"action":"need_body","max":50}`)
	c.refused("PRX-42", 503, "decider_unavailable", whyBroke)
	if got := r.ended(); got != "decider: need_body where none may come" {
		t.Errorf("PRX-42: %q", got)
	}
}

func TestPRX51_57_Timeouts(t *testing.T) {
	r := start(t, allowAll, WithVerdictTimeout(50*time.Millisecond))
	c := r.say("POST http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 1\r\n\r\n1")
	r.want("req", 1)
	c.refused("case 18", 503, "decider_unavailable", "request decider: decider timed out")
	r.send(`{"t":"verdict","id":1,"action":"need_body","max":5}`)
	r.allow(1)
	c = r.say("POST http://U/ HTTP/1.1\r\nHost: U\r\nContent-Length: 2\r\n\r\n1")
	r.want("req", 2)
	r.send(`{"t":"verdict","id":2,"action":"need_body","max":5}`)
	if _, err := c.readByte(4 * 50 * time.Millisecond); !isTimeout(err) {
		t.Errorf("PRX-51: there is a timer while the body is read: %v", err)
	}
	c.say("2")
	r.want("body", 2)
	c.refused("PRX-51 after body", 503, "decider_unavailable", "request decider: decider timed out")
	r.allow(1)
	if got := r.ended(); got != "decider: verdict for id 1, which nothing waits on" {
		t.Errorf("case 18: %q", got)
	}
	if r.up.dialled() != 0 {
		t.Error("a late allow forwards something")
	}
}

// readByte waits for a byte for a time.
func (c *client) readByte(d time.Duration) (byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(d))
	defer func() { _ = c.SetDeadline(time.Now().Add(patience)) }()
	var b [1]byte
	_, err := c.Read(b[:])
	return b[0], err
}

func TestPRX55_BodyBudget(t *testing.T) {
	r := start(t, allowAll)
	request := "POST http://U/ HTTP/1.1\r\nHost: U\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
	var clients []*client
	for id := 1; id <= 3; id++ {
		clients = append(clients, r.say(request))
		r.want("req", id)
		r.send(`{"t":"verdict","id":%d,"action":"need_body","max":33554432}`, id)
	}
	clients[2].refused("case 21", 503, "decider_unavailable", "request decider: too many request bodies held for inspection")
	r.send(`{"t":"verdict","id":3,"action":"deny","status":403}`) // for what was given up on: dropped
	for i, c := range clients[:2] {
		c.say("0\r\n\r\n")
		if body := r.want("body", i+1); body["data"] != "eA==" {
			t.Errorf("case 21: %v", body)
		}
		r.allow(i + 1)
		if got := c.hears("POST"); got.status != 200 {
			t.Errorf("case 21: %v", got)
		}
	}
	c := r.say(strings.Replace(request, "chunked", "chunked", 1)) // the reservations have ended with the verdicts
	r.want("req", 4)
	r.send(`{"t":"verdict","id":4,"action":"need_body","max":33554432}`)
	c.say("0\r\n\r\n")
	r.want("body", 4)
	r.allow(4)
	c.hears("POST")
}

func TestPRX56_DeciderThatDoesNotRead(t *testing.T) {
	l := newLink(&stuck{closed: make(chan struct{})}, newDiscard())
	defer l.close()
	frame := make([]byte, 20<<20)
	var err error
	sent := 0
	for ; err == nil; sent += len(frame) {
		err = l.send(func() []byte { return frame })
	}
	want := fmt.Sprintf("decider: not reading: %d bytes queued", sent+len(ownHello()))
	if got := l.err.Error(); got != want || sent <= maxQueued || sent-len(frame) > maxQueued {
		t.Errorf("%q after %d bytes, want %q", got, sent, want)
	}
}
