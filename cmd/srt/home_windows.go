package main

import "os/user"

// accountHome asks the account database for this user's home directory.
func accountHome() (string, error) {
	account, err := user.Current()
	if err != nil {
		return "", err
	}
	return account.HomeDir, nil
}
