#include "textflag.h"

// func prlimit(old *Limit) uintptr
TEXT ·prlimit(SB),NOSPLIT,$0-16
	MOVD	ZR, R0
	MOVD	$7, R1
	MOVD	ZR, R2
	MOVD	old+0(FP), R3
	MOVD	$261, R8
	SVC
	MOVD	R0, ret+8(FP)
	RET
