// Convolutions of pairs on x86-64, see conv.go, and the blends that they multiply.

#include "go_asm.h"
#include "rows_amd64.h"
#include "textflag.h"

// LOAD_BLEND: R8, R9, R10 = of, with, dst of a row, R11 = the stride in bytes of the first two, R12 = that
// of dst in elements, BX = rows.
#define LOAD_BLEND \
	MOVQ b+0(FP), AX \
	MOVQ blending_of(AX), R8 \
	MOVQ blending_with(AX), R9 \
	MOVQ blending_dst(AX), R10 \
	MOVQ blending_stride(AX), R11 \
	SHLQ $2, R11 \
	MOVQ blending_dstStride(AX), R12 \
	MOVQ blending_rows(AX), BX

// Registers of the three functions below: AX = args; R13, R11 = blends of rows 0 and 3, R8 = bytes from
// row to row; DX = weights, R9 = weights to bring nearer, R10 = where sums are kept meanwhile. Z0 to
// Z23 = sums, 4 vectors of outputs for each row.

#define LOAD_CONV \
	MOVQ a+0(FP), AX \
	MOVQ convArgs_x(AX), R13 \
	MOVQ convArgs_rowStride(AX), R8 \
	LEAQ (R8)(R8*2), R11 \
	ADDQ R13, R11 \
	MOVQ convArgs_w(AX), DX \
	MOVQ convArgs_ahead(AX), R9 \
	LEAQ 63(SP), R10 \
	ANDQ $~63, R10

// A step multiplies 4 blends of each row.
#define STEP4 \
	WEIGHTS_VNNI \
	PREFETCHT1 (R9) \
	ADDQ $64, R9 \
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3) \
	ROW_VNNI((R13)(R8*1), Z29, Z4, Z5, Z6, Z7) \
	ROW_VNNI((R13)(R8*2), Z30, Z8, Z9, Z10, Z11) \
	ROW_VNNI((R11), Z31, Z12, Z13, Z14, Z15)

#define STEP5 \
	STEP4 \
	ROW_VNNI((R11)(R8*1), Z28, Z16, Z17, Z18, Z19)

#define STEP6 \
	STEP5 \
	ROW_VNNI((R11)(R8*2), Z29, Z20, Z21, Z22, Z23)

#define NEXT_STEP \
	ADDQ $4, R13 \
	ADDQ $4, R11 \
	DECQ CX

#define ZERO_ROW(A0, A1, A2, A3) \
	VPXORD A0, A0, A0 \
	VPXORD A1, A1, A1 \
	VPXORD A2, A2, A2 \
	VPXORD A3, A3, A3

#define ZERO4 \
	ZERO_ROW(Z0, Z1, Z2, Z3) \
	ZERO_ROW(Z4, Z5, Z6, Z7) \
	ZERO_ROW(Z8, Z9, Z10, Z11) \
	ZERO_ROW(Z12, Z13, Z14, Z15)

#define ZERO5 ZERO4 ZERO_ROW(Z16, Z17, Z18, Z19)

#define ZERO6 ZERO5 ZERO_ROW(Z20, Z21, Z22, Z23)

#define KEEP_ROW(AT, A0, A1, A2, A3) \
	VMOVDQA32 A0, AT(R10) \
	VMOVDQA32 A1, (AT+64)(R10) \
	VMOVDQA32 A2, (AT+128)(R10) \
	VMOVDQA32 A3, (AT+192)(R10)

#define KEEP4 \
	KEEP_ROW(0, Z0, Z1, Z2, Z3) \
	KEEP_ROW(256, Z4, Z5, Z6, Z7) \
	KEEP_ROW(512, Z8, Z9, Z10, Z11) \
	KEEP_ROW(768, Z12, Z13, Z14, Z15)

#define KEEP5 KEEP4 KEEP_ROW(1024, Z16, Z17, Z18, Z19)

#define KEEP6 KEEP5 KEEP_ROW(1280, Z20, Z21, Z22, Z23)

#define TAKE_ROW(AT, A0, A1, A2, A3) \
	VMOVDQA32 AT(R10), A0 \
	VMOVDQA32 (AT+64)(R10), A1 \
	VMOVDQA32 (AT+128)(R10), A2 \
	VMOVDQA32 (AT+192)(R10), A3

#define TAKE4 \
	TAKE_ROW(0, Z0, Z1, Z2, Z3) \
	TAKE_ROW(256, Z4, Z5, Z6, Z7) \
	TAKE_ROW(512, Z8, Z9, Z10, Z11) \
	TAKE_ROW(768, Z12, Z13, Z14, Z15)

#define TAKE5 TAKE4 TAKE_ROW(1024, Z16, Z17, Z18, Z19)

#define TAKE6 TAKE5 TAKE_ROW(1280, Z20, Z21, Z22, Z23)

// TURN keeps what was kept minus A, and adds it to A.
#define TURN(AT, A) \
	VMOVDQA32 AT(R10), Z28 \
	VPSUBD A, Z28, Z29 \
	VPADDD Z28, A, A \
	VMOVDQA32 Z29, AT(R10)

#define TURN_ROW(AT, A0, A1, A2, A3) \
	TURN(AT, A0) \
	TURN((AT+64), A1) \
	TURN((AT+128), A2) \
	TURN((AT+192), A3)

#define TURN4 \
	TURN_ROW(0, Z0, Z1, Z2, Z3) \
	TURN_ROW(256, Z4, Z5, Z6, Z7) \
	TURN_ROW(512, Z8, Z9, Z10, Z11) \
	TURN_ROW(768, Z12, Z13, Z14, Z15)

#define TURN5 TURN4 TURN_ROW(1024, Z16, Z17, Z18, Z19)

#define TURN6 TURN5 TURN_ROW(1280, Z20, Z21, Z22, Z23)

// LOAD_ENDS sets up the walk over results: SI = dst, DI = res, BX and R12 their strides, R15 = what is
// added to the sums, CX = biases.
#define LOAD_ENDS \
	MOVQ convArgs_dst(AX), SI \
	MOVQ convArgs_res(AX), DI \
	MOVQ convArgs_dstStride(AX), BX \
	MOVQ convArgs_resStride(AX), R12 \
	MOVQ convArgs_zero(AX), R15 \
	MOVQ convArgs_scale(AX), CX \
	VMOVUPS (CX), Z24 \
	VMOVUPS 64(CX), Z25 \
	VMOVUPS 128(CX), Z26 \
	VMOVUPS 192(CX), Z27 \
	MOVQ convArgs_rowScale(AX), CX \
	VBROADCASTSS (CX), Z28 \
	VBROADCASTSS convArgs_lowest(AX), Z29 \
	MOVQ convArgs_bias(AX), CX

// SECOND moves on to the second token of each pair.
#define SECOND \
	MOVQ (convArgs_zero+8)(AX), R15 \
	MOVQ convArgs_dstStride(AX), CX \
	SHRQ $1, CX \
	ADDQ CX, SI \
	MOVQ convArgs_resStride(AX), CX \
	SHRQ $1, CX \
	ADDQ CX, DI \
	MOVQ convArgs_bias(AX), CX

// END turns 16 sums into floats: (sum * Z28) * scale + bias, at least Z29, plus residual.
#define END(A, SCALE, AT) \
	VPADDD AT(R15), A, A \
	VCVTDQ2PS A, A \
	VMULPS Z28, A, A \
	VMULPS SCALE, A, A \
	VADDPS AT(CX), A, A \
	VMAXPS Z29, A, A \
	VADDPS AT(DI), A, A \
	VMOVUPS A, AT(SI)

#define END_ROW(A0, A1, A2, A3) \
	END(A0, Z24, 0) \
	END(A1, Z25, 64) \
	END(A2, Z26, 128) \
	END(A3, Z27, 192) \
	ADDQ BX, SI \
	ADDQ R12, DI

#define END4 \
	END_ROW(Z0, Z1, Z2, Z3) \
	END_ROW(Z4, Z5, Z6, Z7) \
	END_ROW(Z8, Z9, Z10, Z11) \
	END_ROW(Z12, Z13, Z14, Z15)

#define END5 END4 END_ROW(Z16, Z17, Z18, Z19)

#define END6 END5 END_ROW(Z20, Z21, Z22, Z23)

// CONV computes a block: what is for both; what is turned, and with it what the second tokens start
// from, which is kept; the first tokens; the second ones.
#define CONV(ZERO, STEP, KEEP, TURN, TAKE, END) \
	LOAD_CONV \
	ZERO \
	MOVQ convArgs_steps(AX), CX \
both: \
	STEP \
	NEXT_STEP \
	JNZ both \
	KEEP \
	MOVQ (convArgs_steps+8)(AX), CX \
	TESTQ CX, CX \
	JZ one \
	ZERO \
turned: \
	STEP \
	NEXT_STEP \
	JNZ turned \
	TURN \
one: \
	MOVQ (convArgs_steps+16)(AX), CX \
first: \
	STEP \
	NEXT_STEP \
	JNZ first \
	LOAD_ENDS \
	END \
	TAKE \
	MOVQ (convArgs_steps+24)(AX), CX \
second: \
	STEP \
	NEXT_STEP \
	JNZ second \
	LOAD_ENDS \
	SECOND \
	END \
	VZEROUPPER \
	RET

// func conv6VNNI(a *convArgs)
TEXT ·conv6VNNI(SB), 0, $1600-8
	CONV(ZERO6, STEP6, KEEP6, TURN6, TAKE6, END6)

// func conv5VNNI(a *convArgs)
TEXT ·conv5VNNI(SB), 0, $1344-8
	CONV(ZERO5, STEP5, KEEP5, TURN5, TAKE5, END5)

// func conv4VNNI(a *convArgs)
TEXT ·conv4VNNI(SB), 0, $1088-8
	CONV(ZERO4, STEP4, KEEP4, TURN4, TAKE4, END4)

// func rowsAVX2(a *sumArgs)
// 4 rows x 8 outputs.
TEXT ·rowsAVX2(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), AX
	MOVQ sumArgs_x(AX), R13
	MOVQ sumArgs_rowStride(AX), R8
	LEAQ (R8)(R8*2), R11
	ADDQ R13, R11
	MOVQ sumArgs_w(AX), DX
	MOVQ sumArgs_steps(AX), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

#define SUM_OUT(A0, A1) \
	VPHADDD A1, A0, A0 \
	VPERMQ $0xd8, A0, A0 \
	VMOVDQU A0, (DX) \
	ADDQ $256, DX

step:
	WEIGHTS_AVX2
	ROW_AVX2((R13), Y0, Y1)
	ROW_AVX2((R13)(R8*1), Y2, Y3)
	ROW_AVX2((R13)(R8*2), Y4, Y5)
	ROW_AVX2((R11), Y6, Y7)
	ADDQ $8, R13
	ADDQ $8, R11
	DECQ CX
	JNZ  step

	MOVQ sumArgs_out(AX), DX
	SUM_OUT(Y0, Y1)
	SUM_OUT(Y2, Y3)
	SUM_OUT(Y4, Y5)
	SUM_OUT(Y6, Y7)
	VZEROUPPER
	RET

// func blendAVX512(b *blending)
TEXT ·blendAVX512(SB), NOSPLIT, $0-8
	LOAD_BLEND
	VBROADCASTSS blending_inv(AX), Z0
	VBROADCASTSS blending_sign(AX), Z1
	MOVL         $0x80808080, CX
	VMOVD        CX, X2
	VPBROADCASTD X2, X2

row:
	MOVQ R8, SI
	MOVQ R9, DI
	MOVQ R10, DX
	MOVQ blending_seg(AX), CX
	SHRQ $4, CX

loop:
	VMULPS    (DI), Z1, Z3
	VADDPS    (SI), Z3, Z3
	VMULPS    Z0, Z3, Z3
	VCVTPS2DQ Z3, Z3
	VPMOVSDB  Z3, X3
	VPXOR     X2, X3, X3
	VMOVDQU   X3, (DX)
	ADDQ      $64, SI
	ADDQ      $64, DI
	ADDQ      $16, DX
	DECQ      CX
	JNZ       loop

	ADDQ R11, R8
	ADDQ R11, R9
	ADDQ R12, R10
	DECQ BX
	JNZ  row
	VZEROUPPER
	RET

// func blendAVX2(b *blending)
TEXT ·blendAVX2(SB), NOSPLIT, $0-8
	LOAD_BLEND
	ADDQ         R12, R12
	VBROADCASTSS blending_inv(AX), Y0
	VBROADCASTSS blending_sign(AX), Y1

wideRow:
	MOVQ R8, SI
	MOVQ R9, DI
	MOVQ R10, DX
	MOVQ blending_seg(AX), CX
	SHRQ $4, CX

wide:
	VMULPS    (DI), Y1, Y3
	VMULPS    32(DI), Y1, Y4
	VADDPS    (SI), Y3, Y3
	VADDPS    32(SI), Y4, Y4
	VMULPS    Y0, Y3, Y3
	VMULPS    Y0, Y4, Y4
	VCVTPS2DQ Y3, Y3
	VCVTPS2DQ Y4, Y4
	VPACKSSDW Y4, Y3, Y3
	VPERMQ    $0xd8, Y3, Y3
	VPACKSSWB Y3, Y3, Y3
	VPERMQ    $0x08, Y3, Y3
	VPMOVSXBW X3, Y3
	VMOVDQU   Y3, (DX)
	ADDQ      $64, SI
	ADDQ      $64, DI
	ADDQ      $32, DX
	DECQ      CX
	JNZ       wide

	ADDQ R11, R8
	ADDQ R11, R9
	ADDQ R12, R10
	DECQ BX
	JNZ  wideRow
	VZEROUPPER
	RET
