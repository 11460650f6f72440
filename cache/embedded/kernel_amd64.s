// Scans of heads, sums over sketches and dot products on x86-64. Heads: blocks of [byte][64 lanes],
// see kernel.go.

#include "textflag.h"

DATA low<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL low<>(SB), RODATA|NOPTR, $8

DATA ones<>+0(SB)/8, $0x0001000100010001
GLOBL ones<>(SB), RODATA|NOPTR, $8

// bits of each nibble
DATA nibbles<>+0(SB)/8, $0x0302020102010100
DATA nibbles<>+8(SB)/8, $0x0403030203020201
GLOBL nibbles<>(SB), RODATA|NOPTR, $16

// LOAD: DX walks the hits, R12 the sums, SI the heads, DI the tails, CX counts blocks.
#define LOAD \
	MOVQ s+0(FP), DX \
	LEAQ 128(DX), R12 \
	MOVQ heads+8(FP), SI \
	MOVQ tails+16(FP), DI \
	MOVQ blocks+24(FP), CX

// FETCH lets the tails come whose bits are set in AX. It clears AX.
#define FETCH(more, done) \
	TESTQ AX, AX \
	JZ    done \
more: \
	TZCNTQ AX, R9 \
	SHLQ $5, R9 \
	PREFETCHT0 (DI)(R9*1) \
	BLSRQ AX, AX \
	JNZ more \
done: \

// ROWS_AVX512 lets the next block come and adds what two bytes of 64 heads at AT say: to the words of Z0 byte by byte, carries and all,
// and to those of Z1 the odd lanes alone. A byte holds four entries of tables, at most 224. Z15 = low nibbles.
#define ROWS_AVX512(AT, TABLES) \
	PREFETCHT0 AT+2048(SI) \
	PREFETCHT0 AT+2112(SI) \
	VMOVDQU64 AT(SI), Z2 \
	VMOVDQU64 AT+64(SI), Z3 \
	VBROADCASTI32X4 TABLES(BX), Z4 \
	VBROADCASTI32X4 TABLES+16(BX), Z5 \
	VBROADCASTI32X4 TABLES+32(BX), Z6 \
	VBROADCASTI32X4 TABLES+48(BX), Z7 \
	VPANDQ Z15, Z2, Z8 \
	VPSRLW $4, Z2, Z2 \
	VPANDQ Z15, Z2, Z2 \
	VPANDQ Z15, Z3, Z9 \
	VPSRLW $4, Z3, Z3 \
	VPANDQ Z15, Z3, Z3 \
	VPSHUFB Z8, Z4, Z8 \
	VPSHUFB Z2, Z5, Z2 \
	VPSHUFB Z9, Z6, Z9 \
	VPSHUFB Z3, Z7, Z3 \
	VPADDB Z8, Z2, Z2 \
	VPADDB Z9, Z3, Z3 \
	VPADDB Z2, Z3, Z2 \
	VPADDW Z2, Z0, Z0 \
	VPSRLW $8, Z2, Z2 \
	VPADDW Z2, Z1, Z1

// func scanAVX512(s *scanned, heads *byte, tails *tail, blocks int, tables *[headNibbles]table, bound int)
TEXT ·scanAVX512(SB), NOSPLIT, $0-48
	LOAD
	MOVQ tables+32(FP), BX
	VPBROADCASTQ low<>(SB), Z15
	VPBROADCASTQ ones<>(SB), Z14
	MOVQ bound+40(FP), R8
	VMOVQ R8, X13
	VPBROADCASTW X13, Z13

block:
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	ROWS_AVX512(0, 0)
	ROWS_AVX512(128, 64)
	ROWS_AVX512(256, 128)
	ROWS_AVX512(384, 192)
	ROWS_AVX512(512, 256)
	ROWS_AVX512(640, 320)
	ROWS_AVX512(768, 384)
	ROWS_AVX512(896, 448)
	ROWS_AVX512(1024, 512)
	ROWS_AVX512(1152, 576)
	ROWS_AVX512(1280, 640)
	ROWS_AVX512(1408, 704)
	ROWS_AVX512(1536, 768)
	ROWS_AVX512(1664, 832)
	ROWS_AVX512(1792, 896)
	ROWS_AVX512(1920, 960)

	VPSLLW $8, Z1, Z2
	VPSUBW Z2, Z0, Z0
	VMOVDQU64 Z0, (R12)
	VMOVDQU64 Z1, 64(R12)
	VPSUBUSW Z13, Z0, Z0 // 0: at most the bound
	VPSUBUSW Z13, Z1, Z1
	VPMINUW Z14, Z0, Z0
	VPMINUW Z14, Z1, Z1
	VPSLLW $8, Z1, Z1
	VPORQ Z1, Z0, Z0
	VPTESTNMB Z0, Z0, K1
	KMOVQ K1, AX
	MOVQ AX, (DX)
	FETCH(more, done)

	ADDQ $8, DX
	ADDQ $128, R12
	ADDQ $2048, SI
	ADDQ $2048, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// ROWS_AVX2 is ROWS_AVX512 for 32 heads, in Y0 and Y1.
#define ROWS_AVX2(AT, TABLES) \
	VMOVDQU AT(R8), Y2 \
	VMOVDQU AT+64(R8), Y3 \
	VBROADCASTI128 TABLES(BX), Y4 \
	VBROADCASTI128 TABLES+16(BX), Y5 \
	VBROADCASTI128 TABLES+32(BX), Y6 \
	VBROADCASTI128 TABLES+48(BX), Y7 \
	VPAND Y15, Y2, Y8 \
	VPSRLW $4, Y2, Y2 \
	VPAND Y15, Y2, Y2 \
	VPAND Y15, Y3, Y9 \
	VPSRLW $4, Y3, Y3 \
	VPAND Y15, Y3, Y3 \
	VPSHUFB Y8, Y4, Y8 \
	VPSHUFB Y2, Y5, Y2 \
	VPSHUFB Y9, Y6, Y9 \
	VPSHUFB Y3, Y7, Y3 \
	VPADDB Y8, Y2, Y2 \
	VPADDB Y9, Y3, Y3 \
	VPADDB Y2, Y3, Y2 \
	VPADDW Y2, Y0, Y0 \
	VPSRLW $8, Y2, Y2 \
	VPADDW Y2, Y1, Y1

// func scanAVX2(s *scanned, heads *byte, tails *tail, blocks int, tables *[headNibbles]table, bound int)
TEXT ·scanAVX2(SB), NOSPLIT, $0-48
	LOAD
	MOVQ tables+32(FP), BX
	VPBROADCASTQ low<>(SB), Y15
	VPCMPEQW Y14, Y14, Y14
	VPSRLW $8, Y14, Y14 // the even bytes
	MOVQ bound+40(FP), R8
	VMOVQ R8, X13
	VPBROADCASTW X13, Y13
	VPXOR Y12, Y12, Y12

block:
	MOVQ SI, R8
	XORQ AX, AX

half:
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	ROWS_AVX2(0, 0)
	ROWS_AVX2(128, 64)
	ROWS_AVX2(256, 128)
	ROWS_AVX2(384, 192)
	ROWS_AVX2(512, 256)
	ROWS_AVX2(640, 320)
	ROWS_AVX2(768, 384)
	ROWS_AVX2(896, 448)
	ROWS_AVX2(1024, 512)
	ROWS_AVX2(1152, 576)
	ROWS_AVX2(1280, 640)
	ROWS_AVX2(1408, 704)
	ROWS_AVX2(1536, 768)
	ROWS_AVX2(1664, 832)
	ROWS_AVX2(1792, 896)
	ROWS_AVX2(1920, 960)

	VPSLLW $8, Y1, Y2
	VPSUBW Y2, Y0, Y0
	VMOVDQU Y0, (R12)
	VMOVDQU Y1, 64(R12)
	VPSUBUSW Y13, Y0, Y0 // 0: at most the bound
	VPSUBUSW Y13, Y1, Y1
	VPCMPEQW Y12, Y0, Y0
	VPCMPEQW Y12, Y1, Y1
	VPBLENDVB Y14, Y0, Y1, Y0
	VPMOVMSKB Y0, R10
	SHRQ $32, AX
	SHLQ $32, R10
	ORQ  R10, AX
	ADDQ $32, R12
	ADDQ $32, R8
	MOVQ R8, R11
	SUBQ SI, R11
	CMPQ R11, $64
	JNE  half

	MOVQ AX, (DX)
	FETCH(more, done)

	ADDQ $8, DX
	ADDQ $64, R12
	ADDQ $2048, SI
	ADDQ $2048, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// REFINE walks the tails whose bits are set; between it and KEEP R10 gets a tail's sum. DX walks the hits,
// SI the sums, DI the tails, R13 the items, CX counts blocks, R8 = bound, AX = bits to do, R11 = bits that
// stay, R9 = lane, R12 = its tail.
#define REFINE(block, next, store) \
block: \
	MOVQ (DX), AX \
	MOVQ AX, R11 \
	TESTQ AX, AX \
	JZ   store \
next: \
	TZCNTQ AX, R9 \
	MOVQ R9, R12 \
	SHLQ $5, R12

// KEEP: the sum of the head lies at lane + lane%2*63, in bytes.
#define KEEP(block, next, store, far, keep) \
	MOVQ R9, R12 \
	ANDQ $1, R12 \
	NEGQ R12 \
	ANDQ $63, R12 \
	ADDQ R9, R12 \
	MOVWLZX (SI)(R12*1), R12 \
	ADDQ R12, R10 \
	CMPQ R10, R8 \
	JGT  far \
	PREFETCHT0 (R13)(R9*8) \
	BLSRQ AX, AX \
	JNZ  next \
	JMP  keep \
far: \
	BTRQ R9, R11 \
	BLSRQ AX, AX \
	JNZ  next \
keep: \
	MOVQ R11, (DX) \
store: \
	ADDQ $8, DX \
	ADDQ $128, SI \
	ADDQ $2048, DI \
	ADDQ $512, R13 \
	DECQ CX \
	JNZ  block \
	VZEROUPPER \
	RET

// the weights of planes 0 and 1, 2 and 3
DATA weights<>+0(SB)/8, $1
DATA weights<>+8(SB)/8, $2
DATA weights<>+16(SB)/8, $4
DATA weights<>+24(SB)/8, $0xfff8
GLOBL weights<>(SB), RODATA|NOPTR, $32

// func refineAVX512(s *scanned, tails *tail, items *atomic.Pointer[item], blocks int, planes *[valueBits]tail, bound int)
TEXT ·refineAVX512(SB), NOSPLIT, $0-48
	MOVQ s+0(FP), DX
	LEAQ 128(DX), SI
	MOVQ tails+8(FP), DI
	MOVQ items+16(FP), R13
	MOVQ blocks+24(FP), CX
	MOVQ planes+32(FP), BX
	MOVQ bound+40(FP), R8
	VMOVDQU64 (BX), Z0
	VMOVDQU64 64(BX), Z1
	VPBROADCASTQ weights<>+0(SB), Z2
	VPBROADCASTQ weights<>+8(SB), Y3
	VINSERTI64X4 $1, Y3, Z2, Z2
	VPBROADCASTQ weights<>+16(SB), Z3
	VPBROADCASTQ weights<>+24(SB), Y4
	VINSERTI64X4 $1, Y4, Z3, Z3
	REFINE(block, next, store)

	VBROADCASTI64X4 (DI)(R12*1), Z4
	VPANDQ Z0, Z4, Z5
	VPANDQ Z1, Z4, Z6
	VPOPCNTQ Z5, Z5
	VPOPCNTQ Z6, Z6
	VPMADDWD Z2, Z5, Z5
	VPMADDWD Z3, Z6, Z6
	VPADDD Z6, Z5, Z5
	VEXTRACTI64X4 $1, Z5, Y6
	VPADDD Y6, Y5, Y5
	VEXTRACTI128 $1, Y5, X6
	VPADDD X6, X5, X5
	VPSHUFD $0x4e, X5, X6
	VPADDD X6, X5, X5
	VMOVD X5, R10
	MOVLQSX R10, R10
	KEEP(block, next, store, far, keep)

// COUNT_AVX2 counts in the bytes of DST the bits of Y0 that PLANE has as well. Y15 = bits of each nibble,
// Y14 = low nibbles.
#define COUNT_AVX2(PLANE, DST) \
	VPAND PLANE(BX), Y0, Y2 \
	VPAND Y14, Y2, Y4 \
	VPSRLW $4, Y2, Y2 \
	VPAND Y14, Y2, Y2 \
	VPSHUFB Y4, Y15, Y4 \
	VPSHUFB Y2, Y15, Y2 \
	VPADDB Y4, Y2, DST

// func refineAVX2(s *scanned, tails *tail, items *atomic.Pointer[item], blocks int, planes *[valueBits]tail, bound int)
TEXT ·refineAVX2(SB), NOSPLIT, $0-48
	MOVQ s+0(FP), DX
	LEAQ 128(DX), SI
	MOVQ tails+8(FP), DI
	MOVQ items+16(FP), R13
	MOVQ blocks+24(FP), CX
	MOVQ planes+32(FP), BX
	MOVQ bound+40(FP), R8
	VBROADCASTI128 nibbles<>(SB), Y15
	VPBROADCASTQ low<>(SB), Y14
	VPXOR Y13, Y13, Y13
	REFINE(block, next, store)

	VMOVDQU (DI)(R12*1), Y0
	COUNT_AVX2(0, Y6)
	COUNT_AVX2(32, Y7)
	COUNT_AVX2(64, Y8)
	COUNT_AVX2(96, Y9)
	VPADDB Y8, Y8, Y8 // 1, 2, 4: at most 7 * 8
	VPADDB Y8, Y7, Y7
	VPADDB Y7, Y7, Y7
	VPADDB Y7, Y6, Y6
	VPSADBW Y13, Y6, Y6
	VPSADBW Y13, Y9, Y9
	VPSLLQ $3, Y9, Y9 // -8
	VPSUBQ Y9, Y6, Y6
	VEXTRACTI128 $1, Y6, X7
	VPADDQ X7, X6, X6
	VPSHUFD $0x4e, X6, X7
	VPADDQ X7, X6, X6
	VMOVQ X6, R10
	KEEP(block, next, store, far, keep)

// func prefetch(it *item)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ it+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	PREFETCHT0 128(AX)
	PREFETCHT0 192(AX)
	PREFETCHT0 256(AX)
	PREFETCHT0 320(AX)
	PREFETCHT0 384(AX)
	PREFETCHT0 448(AX)
	PREFETCHT0 512(AX)
	PREFETCHT0 576(AX)
	PREFETCHT0 640(AX)
	PREFETCHT0 704(AX)
	PREFETCHT0 768(AX)
	PREFETCHT0 832(AX)
	PREFETCHT0 896(AX)
	PREFETCHT0 960(AX)
	PREFETCHT0 1024(AX)
	PREFETCHT0 1088(AX)
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
