// Package darwin will hold the Seatbelt profile generator and the macOS launcher.
package darwin
