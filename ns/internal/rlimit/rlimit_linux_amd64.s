#include "textflag.h"

// func prlimit(old *Limit) uintptr
TEXT ·prlimit(SB),NOSPLIT,$0-16
	XORL	DI, DI
	MOVL	$7, SI
	XORL	DX, DX
	MOVQ	old+0(FP), R10
	MOVL	$302, AX
	SYSCALL
	MOVQ	AX, ret+8(FP)
	RET
