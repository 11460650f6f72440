// Dense layers on arm64: sums of 16 outputs. Weights: tiles of [step][64 outputs][4 inputs], see
// linear.go. The instructions that Go's assembler does not know are spelled as words, by the
// encodings of the Arm Architecture Reference Manual (C7.2: SDOT, SMULL, SADALP).

#include "go_asm.h"
#include "textflag.h"

// SDOT adds to each of 4 sums the products of 4 bytes: Vd.4S += Vn.16B . Vm.16B
#define SDOT(m, n, d) WORD $(0x4e809400 | (m)<<16 | (n)<<5 | (d))

// SMULL and SMULL2 multiply 8 bytes, the lower or upper ones: Vd.8H = Vn * Vm
#define SMULL(m, n, d) WORD $(0x0e20c000 | (m)<<16 | (n)<<5 | (d))
#define SMULL2(m, n, d) WORD $(0x4e20c000 | (m)<<16 | (n)<<5 | (d))

// SADALP adds neighbours: Vd.4S += pairs of Vn.8H
#define SADALP(n, d) WORD $(0x4e606800 | (n)<<5 | (d))

#define ZERO4(A, B, C, D) \
	VEOR A.B16, A.B16, A.B16 \
	VEOR B.B16, B.B16, B.B16 \
	VEOR C.B16, C.B16, C.B16 \
	VEOR D.B16, D.B16, D.B16

// LOAD: R1 = activations, R2 = weights, R3 = taps, R8 and R9 = bytes from tap to tap, row to row.
#define LOAD \
	MOVD a+0(FP), R0 \
	MOVD sums_x(R0), R1 \
	MOVD sums_w(R0), R2 \
	MOVD sums_taps(R0), R3 \
	MOVD sums_tapStride(R0), R8 \
	MOVD sums_rowStride(R0), R9 \
	MOVD $256, R12

#define WEIGHTS \
	VLD1 (R2), [V16.B16, V17.B16, V18.B16, V19.B16] \
	ADD R12, R2

#define SDOT_ROW(x, d0, d1, d2, d3) \
	SDOT(x, 16, d0) \
	SDOT(x, 17, d1) \
	SDOT(x, 18, d2) \
	SDOT(x, 19, d3)

// func blockSDOT(a *sums)
TEXT ·blockSDOT(SB), NOSPLIT, $0-8
	LOAD
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)

tap:
	MOVD sums_steps(R0), R10
	MOVD R1, R4
	ADD  R9, R4, R5
	ADD  R9, R5, R6
	ADD  R9, R6, R7

step:
	WEIGHTS
	VLD1R.P 4(R4), [V20.S4]
	VLD1R.P 4(R5), [V21.S4]
	VLD1R.P 4(R6), [V22.S4]
	VLD1R.P 4(R7), [V23.S4]
	SDOT_ROW(20, 0, 1, 2, 3)
	SDOT_ROW(21, 4, 5, 6, 7)
	SDOT_ROW(22, 8, 9, 10, 11)
	SDOT_ROW(23, 12, 13, 14, 15)
	SUB  $1, R10
	CBNZ R10, step

	ADD  R8, R1
	SUB  $1, R3
	CBNZ R3, tap

	MOVD sums_out(R0), R4
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R4)
	ADD  R12, R4
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R4)
	ADD  R12, R4
	VST1 [V8.S4, V9.S4, V10.S4, V11.S4], (R4)
	ADD  R12, R4
	VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R4)
	RET

// func singleSDOT(a *sums)
TEXT ·singleSDOT(SB), NOSPLIT, $0-8
	LOAD
	ZERO4(V0, V1, V2, V3)

tap1:
	MOVD sums_steps(R0), R10
	MOVD R1, R4

step1:
	WEIGHTS
	VLD1R.P 4(R4), [V20.S4]
	SDOT_ROW(20, 0, 1, 2, 3)
	SUB  $1, R10
	CBNZ R10, step1

	ADD  R8, R1
	SUB  $1, R3
	CBNZ R3, tap1

	MOVD sums_out(R0), R4
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R4)
	RET

// NEON_QUAD multiplies the inputs of 4 outputs and adds pairs of products to two accumulators.
#define NEON_QUAD(x, w, d0, d1) \
	SMULL(x, w, 24) \
	SMULL2(x, w, 25) \
	SADALP(24, d0) \
	SADALP(25, d1)

#define NEON_ROW(x, d0, d1, d2, d3, d4, d5, d6, d7) \
	NEON_QUAD(x, 16, d0, d1) \
	NEON_QUAD(x, 17, d2, d3) \
	NEON_QUAD(x, 18, d4, d5) \
	NEON_QUAD(x, 19, d6, d7)

// func blockNEON(a *sums)
TEXT ·blockNEON(SB), NOSPLIT, $0-8
	LOAD
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)

tap2:
	MOVD sums_steps(R0), R10
	MOVD R1, R4
	ADD  R9, R4, R5

step2:
	WEIGHTS
	VLD1R.P 4(R4), [V20.S4]
	VLD1R.P 4(R5), [V21.S4]
	NEON_ROW(20, 0, 1, 2, 3, 4, 5, 6, 7)
	NEON_ROW(21, 8, 9, 10, 11, 12, 13, 14, 15)
	SUB  $1, R10
	CBNZ R10, step2

	ADD  R8, R1
	SUB  $1, R3
	CBNZ R3, tap2

	VADDP V1.S4, V0.S4, V0.S4
	VADDP V3.S4, V2.S4, V1.S4
	VADDP V5.S4, V4.S4, V2.S4
	VADDP V7.S4, V6.S4, V3.S4
	VADDP V9.S4, V8.S4, V4.S4
	VADDP V11.S4, V10.S4, V5.S4
	VADDP V13.S4, V12.S4, V6.S4
	VADDP V15.S4, V14.S4, V7.S4
	MOVD  sums_out(R0), R4
	VST1  [V0.S4, V1.S4, V2.S4, V3.S4], (R4)
	ADD   R12, R4
	VST1  [V4.S4, V5.S4, V6.S4, V7.S4], (R4)
	RET

// func singleNEON(a *sums)
TEXT ·singleNEON(SB), NOSPLIT, $0-8
	LOAD
	ZERO4(V0, V1, V2, V3)
	ZERO4(V4, V5, V6, V7)

tap3:
	MOVD sums_steps(R0), R10
	MOVD R1, R4

step3:
	WEIGHTS
	VLD1R.P 4(R4), [V20.S4]
	NEON_ROW(20, 0, 1, 2, 3, 4, 5, 6, 7)
	SUB  $1, R10
	CBNZ R10, step3

	ADD  R8, R1
	SUB  $1, R3
	CBNZ R3, tap3

	VADDP V1.S4, V0.S4, V0.S4
	VADDP V3.S4, V2.S4, V1.S4
	VADDP V5.S4, V4.S4, V2.S4
	VADDP V7.S4, V6.S4, V3.S4
	MOVD  sums_out(R0), R4
	VST1  [V0.S4, V1.S4, V2.S4, V3.S4], (R4)
	RET
