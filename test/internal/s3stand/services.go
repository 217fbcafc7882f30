package s3stand

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// serveOther answers one action of each kind of protocol: JSON, and forms answered with XML.
func serveOther(w http.ResponseWriter, r *http.Request, service string, body []byte) {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		answer := "{}"
		if strings.HasSuffix(target, ".GetItem") {
			answer = `{"Item":{"id":{"S":"one"}}}`
		}
		_, _ = io.WriteString(w, answer)
		return
	}
	action := ""
	for _, p := range parameters(string(body)) {
		if p.name == "Action" {
			action = p.value
		}
	}
	answers := map[string]string{
		"sts GetCallerIdentity": "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/me</Arn>" +
			"<UserId>AIDA</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>",
		"iam ListUsers": "<ListUsersResponse><ListUsersResult><IsTruncated>false</IsTruncated><Users><member><UserName>me</UserName>" +
			"</member></Users></ListUsersResult></ListUsersResponse>",
		"ec2 DescribeRegions": "<DescribeRegionsResponse><regionInfo><item><regionName>eu-central-1</regionName></item></regionInfo>" +
			"</DescribeRegionsResponse>",
	}
	answer, ok := answers[service+" "+action]
	switch {
	case ok:
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, answer)
	case body == nil || action == "":
		fmt.Fprintln(w, "verified") // of a service without a name, and nothing is asked of it
	default:
		badRequest("InvalidAction", "The action is not known here.").write(w, r)
	}
}
