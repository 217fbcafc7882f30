#include "textflag.h"

// func forkOn(flags, stack, tls uintptr) (pid, errno uintptr)
//
// As on amd64, but for the order of the last two arguments of clone(2), and what lies on the stack is one place higher.
TEXT ·forkOn(SB),NOSPLIT|NOFRAME,$0-40
	MOVD	flags+0(FP), R0
	MOVD	stack+8(FP), R1
	MOVD	ZR, R2
	MOVD	tls+16(FP), R3
	MOVD	ZR, R4
	MOVD	$220, R8	// SYS_clone
	SVC
	CMN	$4095, R0
	BCS	failed
	CBNZ	R0, parent
	MOVD	8(RSP), R0
	MOVD	16(RSP), R1
	BL	(R1)
	BRK
parent:
	MOVD	R0, pid+24(FP)
	MOVD	ZR, errno+32(FP)
	RET
failed:
	NEG	R0, R0
	MOVD	$-1, R1
	MOVD	R1, pid+24(FP)
	MOVD	R0, errno+32(FP)
	RET
