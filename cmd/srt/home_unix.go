//go:build unix

package main

import (
	"os"
	"os/user"
	"strconv"
)

// accountHome asks the account database for this user's home directory. It looks the id up by number because
// user.Current believes $HOME in a binary without cgo.
func accountHome() (string, error) {
	account, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return "", err
	}
	return account.HomeDir, nil
}
