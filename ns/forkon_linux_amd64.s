#include "textflag.h"

// func forkOn(flags, stack, tls uintptr) (pid, errno uintptr)
//
// clone(2) with another stack. On it lie the first argument of a function and the address of its code, which the child calls:
// as the compiler does (ABIInternal), since what the assembler would call in its place is not compiled with go:norace.
TEXT ·forkOn(SB),NOSPLIT|NOFRAME,$0-40
	MOVQ	flags+0(FP), DI
	MOVQ	stack+8(FP), SI
	XORL	DX, DX
	XORL	R10, R10
	MOVQ	tls+16(FP), R8
	MOVQ	$56, AX	// SYS_clone
	SYSCALL
	CMPQ	AX, $-4095
	JCC	failed
	TESTQ	AX, AX
	JNZ	parent
	MOVQ	0(SP), AX
	MOVQ	8(SP), CX
	XORPS	X15, X15
	XORL	R14, R14	// no goroutine
	CALL	CX
	INT	$3
parent:
	MOVQ	AX, pid+24(FP)
	MOVQ	$0, errno+32(FP)
	RET
failed:
	NEGQ	AX
	MOVQ	$-1, pid+24(FP)
	MOVQ	AX, errno+32(FP)
	RET
