// Scans of sketches and dot products on arm64. Sketches: blocks of [word][8 lanes], see kernel.go.
// The instructions that Go's assembler does not know are spelled as words, by the encodings of the
// Arm Architecture Reference Manual (C7.2: UADDLP, CMHS, SMLAL).

#include "textflag.h"

// UADDLP adds neighbours: 16 bytes to 8 sums, 8 to 4, 4 to 2
#define UADDLP_B(n, d) WORD $(0x6e202800 | (n)<<5 | (d))
#define UADDLP_H(n, d) WORD $(0x6e602800 | (n)<<5 | (d))
#define UADDLP_S(n, d) WORD $(0x6ea02800 | (n)<<5 | (d))

// CMHS sets both halves of Vd to all ones where Vn >= Vm
#define CMHS(m, n, d) WORD $(0x6ee03c00 | (m)<<16 | (n)<<5 | (d))

// SMLAL and SMLAL2 add products of 4 numbers of 16 bits, the lower or upper ones: Vd.4S += Vn * Vm
#define SMLAL(m, n, d) WORD $(0x0e608000 | (m)<<16 | (n)<<5 | (d))
#define SMLAL2(m, n, d) WORD $(0x4e608000 | (m)<<16 | (n)<<5 | (d))

// FOUR adds to the bytes of V0-V3 the bits in which the words of 8 sketches at AT differ from Q.
#define FOUR(AT, Q) \
	VLD1.P 64(AT), [V4.B16, V5.B16, V6.B16, V7.B16] \
	VEOR Q.B16, V4.B16, V4.B16 \
	VEOR Q.B16, V5.B16, V5.B16 \
	VEOR Q.B16, V6.B16, V6.B16 \
	VEOR Q.B16, V7.B16, V7.B16 \
	VCNT V4.B16, V4.B16 \
	VCNT V5.B16, V5.B16 \
	VCNT V6.B16, V6.B16 \
	VCNT V7.B16, V7.B16 \
	VADD V4.B16, V0.B16, V0.B16 \
	VADD V5.B16, V1.B16, V1.B16 \
	VADD V6.B16, V2.B16, V2.B16 \
	VADD V7.B16, V3.B16, V3.B16

// SUM makes 2 sums of 8 bytes each.
#define SUM(n, d) \
	UADDLP_B(n, d) \
	UADDLP_H(d, d) \
	UADDLP_S(d, d)

// NEAR sets a bit of R8 for each of the 8 sums in V0-V3 that is at most the bound; V24-V27 hold
// the bits.
#define NEAR(bound) \
	SUM(0, 4) \
	SUM(1, 5) \
	SUM(2, 6) \
	SUM(3, 7) \
	CMHS(4, bound, 4) \
	CMHS(5, bound, 5) \
	CMHS(6, bound, 6) \
	CMHS(7, bound, 7) \
	VAND V24.B16, V4.B16, V4.B16 \
	VAND V25.B16, V5.B16, V5.B16 \
	VAND V26.B16, V6.B16, V6.B16 \
	VAND V27.B16, V7.B16, V7.B16 \
	VORR V5.B16, V4.B16, V4.B16 \
	VORR V7.B16, V6.B16, V6.B16 \
	VORR V6.B16, V4.B16, V4.B16 \
	VMOV V4.D[0], R8 \
	VMOV V4.D[1], R9 \
	ORR  R9, R8

#define BITS(low, high, V) \
	MOVD $low, R9 \
	MOVD $high, R10 \
	VMOV R9, V.D[0] \
	VMOV R10, V.D[1]

// func scanNEON(hits *byte, near, far *uint64, blocks int, query *sketch, half, whole uint64)
TEXT ·scanNEON(SB), NOSPLIT, $0-56
	MOVD hits+0(FP), R0
	MOVD near+8(FP), R1
	MOVD far+16(FP), R2
	MOVD blocks+24(FP), R3
	MOVD query+32(FP), R4
	MOVD half+40(FP), R5
	MOVD whole+48(FP), R6
	VLD1R.P 8(R4), [V16.D2]
	VLD1R.P 8(R4), [V17.D2]
	VLD1R.P 8(R4), [V18.D2]
	VLD1R.P 8(R4), [V19.D2]
	VLD1R.P 8(R4), [V20.D2]
	VLD1R.P 8(R4), [V21.D2]
	VLD1R.P 8(R4), [V22.D2]
	VLD1R.P 8(R4), [V23.D2]
	BITS(1, 2, V24)
	BITS(4, 8, V25)
	BITS(16, 32, V26)
	BITS(64, 128, V27)
	VDUP R5, V28.D2
	VDUP R6, V29.D2

block:
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	FOUR(R1, V16)
	FOUR(R1, V17)
	FOUR(R1, V18)
	FOUR(R1, V19)
	NEAR(28)
	MOVD R2, R11
	ADD  $256, R2
	CBZ  R8, store

	MOVD R8, R7
	FOUR(R11, V20)
	FOUR(R11, V21)
	FOUR(R11, V22)
	FOUR(R11, V23)
	NEAR(29)
	AND  R7, R8

store:
	MOVB.P R8, 1(R0)
	SUB  $1, R3
	CBNZ R3, block
	RET

// func dotNEON(a, b *vector) int32
TEXT ·dotNEON(SB), NOSPLIT, $0-20
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD $16, R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

step:
	VLD1.P 64(R0), [V4.B16, V5.B16, V6.B16, V7.B16]
	VLD1.P 64(R1), [V16.B16, V17.B16, V18.B16, V19.B16]
	SMLAL(16, 4, 0)
	SMLAL2(16, 4, 1)
	SMLAL(17, 5, 2)
	SMLAL2(17, 5, 3)
	SMLAL(18, 6, 0)
	SMLAL2(18, 6, 1)
	SMLAL(19, 7, 2)
	SMLAL2(19, 7, 3)
	SUB  $1, R2
	CBNZ R2, step

	VADD V1.S4, V0.S4, V0.S4
	VADD V3.S4, V2.S4, V2.S4
	VADD V2.S4, V0.S4, V0.S4
	VADDV V0.S4, V0
	VMOV V0.S[0], R2
	MOVW R2, ret+16(FP)
	RET
