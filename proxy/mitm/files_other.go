//go:build !unix

package mitm

// openNoFollow is nothing here: that the file must be new is all there is to ask for.
const openNoFollow = 0
