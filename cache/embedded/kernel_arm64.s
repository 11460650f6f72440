// Scans of heads, sums over tails and dot products on arm64. Heads: blocks of [byte][64 lanes], see
// kernel.go. The instructions that Go's assembler does not know are spelled as words, by the encodings of
// the Arm Architecture Reference Manual (C7.2: CMHS, SMLAL).

#include "textflag.h"

// CMHS sets each of 8 numbers of 16 bits of Vd to all ones where Vn >= Vm
#define CMHS(m, n, d) WORD $(0x6e603c00 | (m)<<16 | (n)<<5 | (d))

// SMLAL and SMLAL2 add products of 4 numbers of 16 bits, the lower or upper ones: Vd.4S += Vn * Vm
#define SMLAL(m, n, d) WORD $(0x0e608000 | (m)<<16 | (n)<<5 | (d))
#define SMLAL2(m, n, d) WORD $(0x4e608000 | (m)<<16 | (n)<<5 | (d))

// ROWS adds what two bytes of 16 heads, in A and B, say: to the numbers of LOW those of the first 8, to HIGH
// those of the others. A byte holds four entries of tables V4-V7, at most 224. V28 = low nibbles.
#define ROWS(A, B, LOW, HIGH) \
	VAND V28.B16, A.B16, V12.B16 \
	VAND V28.B16, B.B16, V13.B16 \
	VUSHR $4, A.B16, A.B16 \
	VUSHR $4, B.B16, B.B16 \
	VTBL V12.B16, [V4.B16], V12.B16 \
	VTBL V13.B16, [V6.B16], V13.B16 \
	VTBL A.B16, [V5.B16], A.B16 \
	VTBL B.B16, [V7.B16], B.B16 \
	VADD V12.B16, A.B16, A.B16 \
	VADD V13.B16, B.B16, B.B16 \
	VADD A.B16, B.B16, A.B16 \
	VUADDW A.B8, LOW.H8, LOW.H8 \
	VUADDW2 A.B16, HIGH.H8, HIGH.H8

#define CLEAR(V) VEOR V.B16, V.B16, V.B16

// func scanNEON(s *scanned, heads *byte, tails *tail, blocks int, tables *[headNibbles]table, bound int)
TEXT ·scanNEON(SB), NOSPLIT, $0-48
	MOVD s+0(FP), R0 // walks the hits,
	ADD  $128, R0, R6 // the sums
	MOVD heads+8(FP), R1
	MOVD tails+16(FP), R2
	MOVD blocks+24(FP), R3
	MOVD tables+32(FP), R4
	MOVD bound+40(FP), R5
	VMOVI $15, V28.B16
	VDUP R5, V29.H8
	MOVD $0x8040201008040201, R9
	VDUP R9, V30.D2 // the bit of each lane

block:
	CLEAR(V16)
	CLEAR(V17)
	CLEAR(V18)
	CLEAR(V19)
	CLEAR(V20)
	CLEAR(V21)
	CLEAR(V22)
	CLEAR(V23)
	MOVD R4, R7
	MOVD $16, R8

rows:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1.P 64(R1), [V8.B16, V9.B16, V10.B16, V11.B16]
	VLD1.P 64(R7), [V4.B16, V5.B16, V6.B16, V7.B16]
	ROWS(V0, V8, V16, V17)
	ROWS(V1, V9, V18, V19)
	ROWS(V2, V10, V20, V21)
	ROWS(V3, V11, V22, V23)
	SUB  $1, R8
	CBNZ R8, rows

	// The sums, even lanes first
	VUZP1 V17.H8, V16.H8, V0.H8
	VUZP1 V19.H8, V18.H8, V1.H8
	VUZP1 V21.H8, V20.H8, V2.H8
	VUZP1 V23.H8, V22.H8, V3.H8
	VST1.P [V0.H8, V1.H8, V2.H8, V3.H8], 64(R6)
	VUZP2 V17.H8, V16.H8, V0.H8
	VUZP2 V19.H8, V18.H8, V1.H8
	VUZP2 V21.H8, V20.H8, V2.H8
	VUZP2 V23.H8, V22.H8, V3.H8
	VST1.P [V0.H8, V1.H8, V2.H8, V3.H8], 64(R6)

	// The hits
	CMHS(16, 29, 16)
	CMHS(17, 29, 17)
	CMHS(18, 29, 18)
	CMHS(19, 29, 19)
	CMHS(20, 29, 20)
	CMHS(21, 29, 21)
	CMHS(22, 29, 22)
	CMHS(23, 29, 23)
	VUZP1 V17.B16, V16.B16, V0.B16
	VUZP1 V19.B16, V18.B16, V1.B16
	VUZP1 V21.B16, V20.B16, V2.B16
	VUZP1 V23.B16, V22.B16, V3.B16
	VAND V30.B16, V0.B16, V0.B16
	VAND V30.B16, V1.B16, V1.B16
	VAND V30.B16, V2.B16, V2.B16
	VAND V30.B16, V3.B16, V3.B16
	VADDP V1.B16, V0.B16, V0.B16
	VADDP V3.B16, V2.B16, V2.B16
	VADDP V2.B16, V0.B16, V0.B16
	VADDP V0.B16, V0.B16, V0.B16
	VMOV V0.D[0], R8
	MOVD.P R8, 8(R0)

more:
	CBZ  R8, done
	RBIT R8, R9
	CLZ  R9, R9
	ADD  R9<<5, R2, R10
	PRFM (R10), PLDL1KEEP
	SUB  $1, R8, R9
	AND  R9, R8
	B    more

done:
	ADD  $2048, R2
	SUB  $1, R3
	CBNZ R3, block
	RET

// COUNT counts in the bytes of D the bits of V0 and V1 that a plane in A and B has as well.
#define COUNT(A, B, D) \
	VAND A.B16, V0.B16, V2.B16 \
	VAND B.B16, V1.B16, V3.B16 \
	VCNT V2.B16, V2.B16 \
	VCNT V3.B16, V3.B16 \
	VADD V2.B16, V3.B16, D.B16

// func refineNEON(s *scanned, tails *tail, items *atomic.Pointer[item], blocks int, planes *[valueBits]tail, bound int)
TEXT ·refineNEON(SB), NOSPLIT, $0-48
	MOVD s+0(FP), R0 // walks the hits,
	ADD  $128, R0, R1 // the sums
	MOVD tails+8(FP), R2
	MOVD items+16(FP), R3
	MOVD blocks+24(FP), R4
	MOVD planes+32(FP), R5
	MOVD bound+40(FP), R6
	VLD1.P 64(R5), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1 (R5), [V20.B16, V21.B16, V22.B16, V23.B16]

block:
	MOVD (R0), R7 // bits to do
	MOVD R7, R8 // bits that stay
	CBZ  R7, store

next:
	RBIT R7, R9
	CLZ  R9, R9 // lane
	ADD  R9<<5, R2, R10
	VLD1 (R10), [V0.B16, V1.B16]
	COUNT(V16, V17, V4)
	COUNT(V18, V19, V5)
	COUNT(V20, V21, V6)
	COUNT(V22, V23, V7)
	VADD V6.B16, V6.B16, V6.B16 // 1, 2, 4: at most 7 * 16
	VADD V6.B16, V5.B16, V5.B16
	VADD V5.B16, V5.B16, V5.B16
	VADD V5.B16, V4.B16, V4.B16
	VUADDLV V4.B16, V4
	VUADDLV V7.B16, V7
	VMOV V4.H[0], R10
	VMOV V7.H[0], R11
	SUB  R11<<3, R10 // -8

	// The sum of the head lies at lane + lane%2*63, in bytes.
	AND  $1, R9, R11
	NEG  R11, R11
	AND  $63, R11
	ADD  R9, R11
	MOVHU (R1)(R11), R11
	ADD  R11, R10
	CMP  R6, R10
	BGT  far
	ADD  R9<<3, R3, R11
	PRFM (R11), PLDL1KEEP
	B    bit

far:
	MOVD $1, R11
	LSL  R9, R11
	BIC  R11, R8

bit:
	SUB  $1, R7, R11
	AND  R11, R7
	CBNZ R7, next
	MOVD R8, (R0)

store:
	ADD  $8, R0
	ADD  $128, R1
	ADD  $2048, R2
	ADD  $512, R3
	SUB  $1, R4
	CBNZ R4, block
	RET

// func prefetch(it *item)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVD it+0(FP), R0
	MOVD $18, R1

line:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUB  $1, R1
	CBNZ R1, line
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
