package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/internal/s3stand"
)

// CRED-27 to CRED-34: boto3 with a masked key does what it does with the real one: names that have to be encoded, parts,
// a payload that is not signed, forms and JSON.
func TestCRED_AWS_Boto(t *testing.T) {
	needAWS(t)
	eachAlong(t, func(t *testing.T, b *box) {
		b.python()
		c := b.cloud(awsKey)
		r := b.sh(c.cfg(nil), byProxy+"/usr/bin/python3 client.py "+c.url+" names multipart unsigned services").ok()
		r.prints("names ok\nmultipart ok\nunsigned ok\nservices ok")
		how := map[string]int{}
		for _, a := range c.verified(r) {
			how[a.Signed.Service+" "+a.Signed.Payload]++
		}
		for _, want := range []string{"s3 signed", "s3 UNSIGNED-PAYLOAD", "sts signed", "dynamodb signed", "iam signed", "ec2 signed"} {
			if how[want] == 0 {
				t.Errorf("no request of %s: %v", want, how)
			}
		}
	})
}

// CRED-27 to CRED-34: so does AWS's command line, small and in parts.
func TestCRED_AWS_CommandLine(t *testing.T) {
	needAWS(t)
	eachAlong(t, func(t *testing.T, b *box) {
		b.python()
		key := awsKey
		if b.who.root() {
			key.Token = "" // a key of no session
		}
		c := b.cloud(key)
		r := b.sh(c.cfg(nil), byProxy+`set -e; aws() { command aws --endpoint-url "`+c.url+`" "$@"; }
			head -c 1024 /dev/urandom >small; head -c 20971520 /dev/urandom >large
			for f in small large; do aws s3 cp --quiet $f "s3://b/a b+$f"; aws s3 cp --quiet "s3://b/a b+$f" back; cmp $f back; done
			aws s3 ls s3://b/ | tr -s ' ' | cut -d ' ' -f 3-; aws s3 rm --quiet "s3://b/a b+small"
			aws sts get-caller-identity --query Account; aws dynamodb get-item --table-name table --key '{"id":{"S":"1"}}' --query Item.id.S
			aws iam list-users --query 'Users[0].UserName'; aws ec2 describe-regions --query 'Regions[0].RegionName'`).ok()
		r.prints("20971520 a b+large\n1024 a b+small\n\"123456789012\"\n\"one\"\n\"me\"\n\"eu-central-1\"")
		parts := 0
		for _, a := range c.verified(r) {
			if strings.Contains(a.Target, "partNumber") {
				parts++
			}
		}
		if data, ok := c.Object("b/a b+large"); parts < 2 || !ok || len(data) != 20<<20 {
			t.Errorf("%d parts, %d bytes", parts, len(data))
		}
	})
}

// CRED-29, CRED-30: clients of AWS send what cannot be signed again unless they are told not to. srt tells them, says what it
// refuses otherwise, and leaves alone what the person has set.
func TestCRED_30_AWS_Checksums(t *testing.T) {
	needAWS(t)
	eachAlong(t, func(t *testing.T, b *box) {
		b.python()
		c := b.cloud(awsKey)
		run := "/usr/bin/python3 client.py " + c.url + " "
		const echo = `echo "<$AWS_REQUEST_CHECKSUM_CALCULATION>"; `
		r := b.sh(c.cfg(nil), byProxy+echo+run+"stream").ok().prints("<when_required>\nstream ok")
		c.verified(r)
		b.sh(cfg{allow: list{c.host}, net: ends(nil)}, echo).ok().prints("<>") // no key is masked
		trailers := b.sh(c.cfg(nil), run+"version").ok().stdout == "trailers\nversion ok\n"
		b.env = append(b.env, "AWS_REQUEST_CHECKSUM_CALCULATION=when_supported")
		r = b.sh(c.cfg(nil), byProxy+echo+run+"stream; exit 3").exits(3)
		if !trailers {
			r.prints("<when_supported>\nstream ok")
			return
		}
		r.prints("<when_supported>\nstream 403 Forbidden").says("AWS SigV4 streaming request", "AWS_REQUEST_CHECKSUM_CALCULATION is when_required")
		c.Arrived()
		// Let through, they are signed again: the body, in chunks that no signature covers, stays as it is.
		r = b.sh(c.cfg(object{"streaming": "passthrough"}), byProxy+run+"stream checksum").ok().prints("stream ok\nchecksum ok")
		for _, a := range c.verified(r) {
			if a.Signed.Payload != "STREAMING-UNSIGNED-PAYLOAD-TRAILER" {
				t.Errorf("%v", a)
			}
		}
	})
}

// CRED-28, case 34: a key that is not masked is nothing to srt, shapes that could not be signed again included, also where
// another key is masked.
func TestCRED_28_AWS_RealKey(t *testing.T) {
	needAWS(t)
	eachAlong(t, func(t *testing.T, b *box) {
		b.python()
		own := s3stand.Key{ID: "AKIAOWN", Secret: "own-secret"}
		c := b.cloud(own)
		b.env = append(b.env, "AWS_SESSION_TOKEN=masked", "AWS_ACCESS_KEY_ID=masked", "AWS_SECRET_ACCESS_KEY=masked")
		r := b.sh(c.cfg(nil), byProxy+"unset AWS_SESSION_TOKEN AWS_REQUEST_CHECKSUM_CALCULATION; export AWS_ACCESS_KEY_ID=AKIAOWN AWS_SECRET_ACCESS_KEY=own-secret\n"+
			"/usr/bin/python3 client.py "+c.url+" version stream multipart presigned").ok()
		streams := false
		for _, a := range c.verified(r) {
			streams = streams || strings.HasPrefix(a.Signed.Payload, "STREAMING-")
		}
		trailers := strings.HasPrefix(r.stdout, "trailers")
		if streams != trailers || !strings.HasSuffix(r.stdout, "stream ok\nmultipart ok\n200 c\npresigned ok\n") {
			t.Errorf("streams %v; %v", streams, r)
		}
	})
}

// What the server says about a clock or a key reaches the client as it is.
func TestCRED_AWS_ServerRefuses(t *testing.T) {
	needAWS(t)
	each(t, func(t *testing.T, b *box) {
		b.python()
		c := b.cloud(awsKey)
		run := byProxy + "/usr/bin/python3 client.py " + c.url + " skewed"
		c.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
		b.sh(c.cfg(nil), run).ok().prints("skewed RequestTimeTooSkewed The difference between the request time and the current time is too large.")
		c.SetClock(time.Now)
		b.sh(c.cfg(nil), run).ok().prints("skewed ok")
		b.env = append(b.env, "AWS_SECRET_ACCESS_KEY=not it")
		r := b.sh(c.cfg(nil), run).ok()
		if !strings.HasPrefix(r.stdout, "skewed SignatureDoesNotMatch") {
			t.Errorf("%v", r)
		}
	})
}

// CRED-31 to CRED-34: whatever HTTP allows in a request is signed as AWS's documents say, whether its body is substituted in,
// chunked or left out of the signature. That the server checks at all is what TestCRED_AWS_ServerRefuses holds.
func TestCRED_33_AWS_Spellings(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		client := b.dir + "/awsclient"
		b.must(build(client, "./internal/awsclient"))
		key, seed := awsKey, 1
		if b.who.root() {
			key.Token, seed = "", 2
		}
		c := b.cloud(key)
		b.env = append(b.env, "OTHER=planted and longer or shorter")
		settings := c.cfg(object{"streaming": "passthrough"})
		entries := settings.top["credentials"].(object)
		entries["envVars"] = append(entries["envVars"].(list), object{"name": "OTHER", "mode": "mask"})
		r := b.sh(settings, fmt.Sprintf("%s %s random 2000 %d", client, c.host, seed)).ok().prints("0 of 2000 are wrong")
		arrived := c.Arrived()
		if len(arrived) != 2000 {
			t.Errorf("%d requests arrived; %v", len(arrived), r)
		}
		other, how := 0, map[string]int{}
		for _, a := range arrived {
			how[a.Signed.Payload]++
			if strings.Contains(fmt.Sprint(a.Header), "fake_value") {
				t.Errorf("a fake arrived: %v", a.Header)
			}
			if strings.Contains(fmt.Sprint(a.Header), "planted and longer") {
				other++
			}
		}
		if other == 0 {
			t.Error("no header had another value in it")
		}
		if how["signed"] == 0 || how["UNSIGNED-PAYLOAD"] == 0 || how["STREAMING-UNSIGNED-PAYLOAD-TRAILER"] == 0 {
			t.Errorf("a kind of payload is missing: %v", how)
		}
	})
}

// CRED-34, case 34: 64 MiB are signed, one byte more is refused, unless the signature leaves the payload out.
func TestCRED_34_AWS_Limit(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		client := b.dir + "/awsclient"
		b.must(build(client, "./internal/awsclient"))
		c := b.cloud(awsKey)
		put := func(what string) result { return b.sh(c.cfg(nil), client+" "+c.host+" put "+what).ok() }
		put("67108864").prints("200 true ")
		put("67108865 unsigned").prints("200 true ")
		arrived := c.Arrived()
		if len(arrived) != 2 || arrived[0].Length != 64<<20 || arrived[1].Length != 64<<20+1 {
			t.Errorf("%d requests", len(arrived))
		}
		r := put("67108865")
		if !strings.HasPrefix(r.stdout, "403 false AWS SigV4 request uses a masked credential but cannot be re-signed by the sandbox proxy: ") ||
			!strings.Contains(r.stdout, "67108864") || !strings.Contains(r.stdout, "UNSIGNED-PAYLOAD") || len(c.Arrived()) != 0 {
			t.Errorf("%v", r)
		}
	})
}

// CRED-29, CRED-30, CRED-37, case 34: each shape is refused with its text, and forwarded after an update for the command that
// runs.
func TestCRED_30_AWS_Update(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		c := b.cloud(awsKey)
		const scope = "$AWS_ACCESS_KEY_ID/20260101/eu-central-1/s3/aws4_request"
		for shape, args := range map[string]string{
			"streaming": `-T f -H "X-Amz-Date: 20260101T000000Z" -H "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD" ` +
				`-H "Authorization: AWS4-HMAC-SHA256 Credential=` + scope + `, SignedHeaders=host, Signature=0" ` + c.url + "/b/k",
			"sigv4a": `-H "Authorization: AWS4-ECDSA-P256-SHA256 Credential=$AWS_ACCESS_KEY_ID/20260101/s3/aws4_request, SignedHeaders=host, Signature=0" ` + c.url + "/b/k",
			"presigned": `"` + c.url + "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + scope + "&X-Amz-Date=20260101T000000Z" +
				`&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00"`,
		} {
			before, after := c.cfg(nil), c.cfg(object{shape: "passthrough"})
			in, control, err := os.Pipe()
			b.must(err)
			cmd := b.command(srtPath, "-s", b.settings(before), "--control-fd", "3", "sh", "-c", byProxy+
				`echo text >f; get() { curl -sS `+args+`; }; get; touch asked
				while get >answer; grep -q "denied by policy" answer; do sleep 0.1; done; cat answer`)
			cmd.ExtraFiles = []*os.File{in}
			wait := b.start(cmd)
			b.must(in.Close())
			b.appears("asked")
			if got := c.Arrived(); len(got) != 0 {
				t.Errorf("%s: arrived: %v", shape, got)
			}
			b.must(json.NewEncoder(control).Encode(json.RawMessage(after.json())))
			r := wait().ok()
			b.must(control.Close())
			b.must(os.Remove(b.abs("asked")))
			first, rest, _ := strings.Cut(r.stdout, "\n")
			want := "AWS SigV4 " + shape + " request uses a masked credential but cannot be re-signed by the sandbox proxy; denied by policy. " +
				"Set credentials.sigv4." + shape + ` to "passthrough"`
			got := c.Arrived()
			if !strings.HasPrefix(first, want) || !strings.HasPrefix(rest, "<Error>") || len(got) != 1 || got[0].Fault == nil {
				t.Errorf("%s: arrived %v; %v", shape, got, r)
			}
			if strings.Contains(r.stdout+r.stderr, "planted") {
				t.Errorf("%s: a real value is told: %v", shape, r)
			}
		}
	})
}

// CRED-32: curl signs by itself, and knows nothing of S3 or of session tokens: the one of the key is added and signed.
func TestCRED_32_AWS_Curl(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		c := b.cloud(awsKey)
		r := b.sh(c.cfg(nil), byProxy+`curl -sS --aws-sigv4 aws:amz:eu-central-1:sts --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" `+
			`-d 'Action=GetCallerIdentity&Version=2011-06-15' `+c.url+"/").ok()
		if got := c.verified(r); len(got) != 1 || got[0].Header.Get("X-Amz-Security-Token") != awsKey.Token || !strings.Contains(r.stdout, "123456789012") {
			t.Errorf("arrived: %v; %v", got, r)
		}
	})
}
