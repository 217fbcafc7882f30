#include "textflag.h"

// func vfork(trap, flags uintptr) (pid, errno uintptr)
//
// As on amd64; here the return address is in a register already.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-32
	MOVD	trap+0(FP), R8
	MOVD	flags+8(FP), R0
	MOVD	ZR, R1
	MOVD	ZR, R2
	MOVD	ZR, R3
	MOVD	ZR, R4
	MOVD	ZR, R5
	SVC
	CMN	$4095, R0
	BCS	failed
	MOVD	R0, pid+16(FP)
	MOVD	ZR, errno+24(FP)
	RET
failed:
	NEG	R0, R0
	MOVD	$-1, R1
	MOVD	R1, pid+16(FP)
	MOVD	R0, errno+24(FP)
	RET
