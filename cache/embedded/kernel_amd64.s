// Scans of sketches and dot products on x86-64. Sketches: blocks of [word][8 lanes], see kernel.go.

#include "textflag.h"

// LOAD: SI and DI walk the halves, DX the hits, CX counts blocks, BX = query.
#define LOAD \
	MOVQ hits+0(FP), DX \
	MOVQ near+8(FP), SI \
	MOVQ far+16(FP), DI \
	MOVQ blocks+24(FP), CX \
	MOVQ query+32(FP), BX

// HALF_AVX512 adds up in Z16 the bits in which 8 sketches at AT differ from 4 words of the query.
#define HALF_AVX512(AT, Q0, Q1, Q2, Q3) \
	VPXORQ (AT), Q0, Z16 \
	VPXORQ 64(AT), Q1, Z17 \
	VPXORQ 128(AT), Q2, Z18 \
	VPXORQ 192(AT), Q3, Z19 \
	VPOPCNTQ Z16, Z16 \
	VPOPCNTQ Z17, Z17 \
	VPOPCNTQ Z18, Z18 \
	VPOPCNTQ Z19, Z19 \
	VPADDQ Z17, Z16, Z16 \
	VPADDQ Z19, Z18, Z18 \
	VPADDQ Z18, Z16, Z16

// func scanAVX512(hits *byte, near, far *uint64, blocks int, query *sketch, half, whole uint64)
TEXT ·scanAVX512(SB), NOSPLIT, $0-56
	LOAD
	VPBROADCASTQ (BX), Z0
	VPBROADCASTQ 8(BX), Z1
	VPBROADCASTQ 16(BX), Z2
	VPBROADCASTQ 24(BX), Z3
	VPBROADCASTQ 32(BX), Z4
	VPBROADCASTQ 40(BX), Z5
	VPBROADCASTQ 48(BX), Z6
	VPBROADCASTQ 56(BX), Z7
	VPBROADCASTQ half+40(FP), Z8
	VPBROADCASTQ whole+48(FP), Z9

block:
	HALF_AVX512(SI, Z0, Z1, Z2, Z3)
	VPCMPUQ $2, Z8, Z16, K1
	KMOVB K1, AX
	TESTB AX, AX
	JZ    store

	VMOVDQA64 Z16, Z20
	HALF_AVX512(DI, Z4, Z5, Z6, Z7)
	VPADDQ Z20, Z16, Z16
	VPCMPUQ $2, Z9, Z16, K1, K2
	KMOVB K2, AX

store:
	MOVB AX, (DX)
	INCQ DX
	ADDQ $256, SI
	ADDQ $256, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// WORD_AVX2 adds to the bytes of SUM the bits in which the words of 4 sketches at AT differ from a
// word of the query. Y15 = bits of each nibble, Y14 = low nibbles.
#define WORD_AVX2(AT, Q, SUM) \
	VPBROADCASTQ Q, Y0 \
	VPXOR AT, Y0, Y0 \
	VPAND Y14, Y0, Y1 \
	VPSRLW $4, Y0, Y0 \
	VPAND Y14, Y0, Y0 \
	VPSHUFB Y1, Y15, Y1 \
	VPSHUFB Y0, Y15, Y0 \
	VPADDB Y1, SUM, SUM \
	VPADDB Y0, SUM, SUM

// HALF_AVX2 adds 4 words of all 8 sketches of a block to Y2 (the first 4) and Y3. A byte holds at
// most 64.
#define HALF_AVX2(AT, Q) \
	WORD_AVX2((AT), Q(BX), Y2) \
	WORD_AVX2(32(AT), Q(BX), Y3) \
	WORD_AVX2(64(AT), Q+8(BX), Y2) \
	WORD_AVX2(96(AT), Q+8(BX), Y3) \
	WORD_AVX2(128(AT), Q+16(BX), Y2) \
	WORD_AVX2(160(AT), Q+16(BX), Y3) \
	WORD_AVX2(192(AT), Q+24(BX), Y2) \
	WORD_AVX2(224(AT), Q+24(BX), Y3)

// NEAR_AVX2 sets a bit of AX for each of the 8 sums that is at most BOUND.
#define NEAR_AVX2(BOUND) \
	VPSADBW Y13, Y2, Y4 \
	VPSADBW Y13, Y3, Y5 \
	VPCMPGTQ BOUND, Y4, Y4 \
	VPCMPGTQ BOUND, Y5, Y5 \
	VMOVMSKPD Y4, AX \
	VMOVMSKPD Y5, R8 \
	SHLQ $4, R8 \
	ORQ  R8, AX \
	XORQ $255, AX

DATA nibbles<>+0(SB)/8, $0x0302020102010100
DATA nibbles<>+8(SB)/8, $0x0403030203020201
DATA nibbles<>+16(SB)/8, $0x0302020102010100
DATA nibbles<>+24(SB)/8, $0x0403030203020201
GLOBL nibbles<>(SB), RODATA|NOPTR, $32

DATA low<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL low<>(SB), RODATA|NOPTR, $8

// func scanAVX2(hits *byte, near, far *uint64, blocks int, query *sketch, half, whole uint64)
TEXT ·scanAVX2(SB), NOSPLIT, $0-56
	LOAD
	VMOVDQU nibbles<>(SB), Y15
	VPBROADCASTQ low<>(SB), Y14
	VPXOR Y13, Y13, Y13
	VPBROADCASTQ half+40(FP), Y12
	VPBROADCASTQ whole+48(FP), Y11

block:
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	HALF_AVX2(SI, 0)
	NEAR_AVX2(Y12)
	TESTQ AX, AX
	JZ    store

	MOVQ AX, R9
	HALF_AVX2(DI, 32)
	NEAR_AVX2(Y11)
	ANDQ R9, AX

store:
	MOVB AX, (DX)
	INCQ DX
	ADDQ $256, SI
	ADDQ $256, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// func dotAVX2(a, b *vector) int32
TEXT ·dotAVX2(SB), NOSPLIT, $0-20
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ $8, CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

step:
	VMOVDQU (SI), Y4
	VMOVDQU 32(SI), Y5
	VMOVDQU 64(SI), Y6
	VMOVDQU 96(SI), Y7
	VPMADDWD (DI), Y4, Y4
	VPMADDWD 32(DI), Y5, Y5
	VPMADDWD 64(DI), Y6, Y6
	VPMADDWD 96(DI), Y7, Y7
	VPADDD Y4, Y0, Y0
	VPADDD Y5, Y1, Y1
	VPADDD Y6, Y2, Y2
	VPADDD Y7, Y3, Y3
	ADDQ $128, SI
	ADDQ $128, DI
	DECQ CX
	JNZ  step

	VPADDD Y1, Y0, Y0
	VPADDD Y3, Y2, Y2
	VPADDD Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0x4e, X0, X1
	VPADDD X1, X0, X0
	VPSHUFD $0xb1, X0, X1
	VPADDD X1, X0, X0
	VMOVD X0, AX
	MOVL AX, ret+16(FP)
	VZEROUPPER
	RET
