package config

// Credentials is the section credentials (CRED-1).
type Credentials struct {
	Files                []FileCredential
	EnvVars              []EnvCredential
	AllowPlaintextInject bool
	AWSPairs             []AWSPair
	SigV4                SigV4
}

// FileCredential is an entry of credentials.files.
type FileCredential struct {
	Path           string // required, non-empty; a pattern only in mode deny (CFG-64, CFG-65)
	MaskDuplicates bool   // Linux
	Credential
}

// EnvCredential is an entry of credentials.envVars.
type EnvCredential struct {
	Name string // required; [A-Za-z_][A-Za-z0-9_]*
	Credential
}

// Credential is what files and variables have in common. All but Mode only counts for ModeMask, but is validated for
// either mode (CFG-40).
type Credential struct {
	Mode             string   // required; ModeDeny or ModeMask
	Extract          string   // ECMAScript regular expression with a group, see CompileExtract; empty: not given
	OnExtractNoMatch string   // one of the NoMatch constants; empty: NoMatchWarn
	Decode           string   // DecodeJWT; empty: none
	MaskClaims       []string // needs Decode; nil: not given, else at least one, non-empty (CFG-76)
	InjectHosts      []string // host patterns without port; nil: network.allowedDomains; empty: none (deny only)
}

// Values of Credential.Mode.
const (
	ModeDeny = "deny"
	ModeMask = "mask"
)

// Values of Credential.OnExtractNoMatch.
const (
	NoMatchWarn  = "warn"
	NoMatchDeny  = "deny"
	NoMatchError = "error"
)

// DecodeJWT is the value of Credential.Decode.
const DecodeJWT = "jwt"

// AWSPair is an entry of credentials.awsPairs: the variables of one AWS key. Each names a masked variable (CFG-77).
type AWSPair struct {
	AccessKeyIDVar     string // required
	SecretAccessKeyVar string // required
	SessionTokenVar    string // empty: none
}

// SigV4 is the section credentials.sigv4: what happens to the request shapes that cannot be signed again (CRED-30).
// Each is SigV4Deny or SigV4Passthrough; empty: SigV4Deny.
type SigV4 struct{ Streaming, Presigned, SigV4A string }

// Values of the fields of SigV4.
const (
	SigV4Deny        = "deny"
	SigV4Passthrough = "passthrough"
)

// Masks reports whether any file or variable is masked rather than denied.
func (c *Credentials) Masks() bool {
	if c == nil {
		return false
	}
	for i := range c.Files {
		if c.Files[i].Mode == ModeMask {
			return true
		}
	}
	for i := range c.EnvVars {
		if c.EnvVars[i].Mode == ModeMask {
			return true
		}
	}
	return false
}
