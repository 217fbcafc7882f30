// Package windows will hold the planners and calls for the Windows account, filters and access lists.
package windows
