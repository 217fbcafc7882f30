#include "textflag.h"

// func vfork(trap, flags uintptr) (pid, errno uintptr)
//
// clone(CLONE_VM|CLONE_VFORK): the child runs on this very stack while its parent waits, and overwrites what lies below
// the caller's frame, the return address of this call among it. So that address is kept in a register, which each of
// the two has for itself.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ	trap+0(FP), AX
	MOVQ	flags+8(FP), DI
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	XORL	R9, R9
	POPQ	R13
	SYSCALL
	PUSHQ	R13
	CMPQ	AX, $-4095
	JCC	failed
	MOVQ	AX, pid+16(FP)
	MOVQ	$0, errno+24(FP)
	RET
failed:
	NEGQ	AX
	MOVQ	$-1, pid+16(FP)
	MOVQ	AX, errno+24(FP)
	RET
