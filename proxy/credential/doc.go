// Package credential will replace masked credentials in requests and re-sign AWS ones (rules CRED-*). Until it exists,
// a settings file that masks a credential is refused at start.
package credential
