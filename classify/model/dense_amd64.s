// Dense layers on x86-64. Weights: tiles of [step][64 outputs][4 inputs], see linear.go.

#include "go_asm.h"
#include "rows_amd64.h"
#include "textflag.h"

// LOAD_ROWS sets up the walk over rows: SI = row 0, DI = row 3, R8 = bytes from row to row.
#define LOAD_ROWS \
	MOVQ a+0(FP), AX \
	MOVQ args_x(AX), SI \
	MOVQ args_rowStride(AX), R8 \
	LEAQ (R8)(R8*2), R9 \
	LEAQ (SI)(R9*1), DI \
	MOVQ args_w(AX), DX \
	MOVQ args_taps(AX), R10 \
	MOVQ args_tapStride(AX), R12

// LOAD_OUT sets up the walk over results: SI = dst, DI = res, R8 and R9 their strides,
// R10 = scales of the rows, R11 = scales of the outputs, R12 = biases.
#define LOAD_OUT \
	MOVQ args_dst(AX), SI \
	MOVQ args_res(AX), DI \
	MOVQ args_dstStride(AX), R8 \
	MOVQ args_resStride(AX), R9 \
	MOVQ args_rowScale(AX), R10 \
	MOVQ args_scale(AX), R11 \
	MOVQ args_bias(AX), R12

// OUT_VNNI turns 16 sums into floats: (sum * Z28) * scale + bias, at least Z29, plus residual.
#define OUT_VNNI(A, SCALE, AT) \
	VCVTDQ2PS A, A \
	VMULPS Z28, A, A \
	VMULPS SCALE, A, A \
	VADDPS AT(R12), A, A \
	VMAXPS Z29, A, A \
	VADDPS AT(DI), A, A \
	VMOVUPS A, AT(SI)

#define OUT_ROW_VNNI(A0, A1, A2, A3) \
	VBROADCASTSS (R10), Z28 \
	OUT_VNNI(A0, Z24, 0) \
	OUT_VNNI(A1, Z25, 64) \
	OUT_VNNI(A2, Z26, 128) \
	OUT_VNNI(A3, Z27, 192) \
	ADDQ $4, R10 \
	ADDQ R8, SI \
	ADDQ R9, DI

#define OUT_SCALES_VNNI \
	VMOVUPS (R11), Z24 \
	VMOVUPS 64(R11), Z25 \
	VMOVUPS 128(R11), Z26 \
	VMOVUPS 192(R11), Z27 \
	VBROADCASTSS args_lowest(AX), Z29

#define ZEROS_VNNI \
	MOVQ args_zero(AX), CX \
	VMOVDQU32 (CX), Z0 \
	VMOVDQU32 64(CX), Z1 \
	VMOVDQU32 128(CX), Z2 \
	VMOVDQU32 192(CX), Z3

#define COPY_VNNI(A0, A1, A2, A3) \
	VMOVDQA32 Z0, A0 \
	VMOVDQA32 Z1, A1 \
	VMOVDQA32 Z2, A2 \
	VMOVDQA32 Z3, A3

// func blockVNNI(a *args)
// 24 accumulators, 6 rows x 4 vectors of outputs; a step of 24 multiplications takes 10 loads. One
// block of rows after the other, the args moved on.
TEXT ·blockVNNI(SB), NOSPLIT, $0-8
block:
	LOAD_ROWS
	ZEROS_VNNI
	COPY_VNNI(Z4, Z5, Z6, Z7)
	COPY_VNNI(Z8, Z9, Z10, Z11)
	COPY_VNNI(Z12, Z13, Z14, Z15)
	COPY_VNNI(Z16, Z17, Z18, Z19)
	COPY_VNNI(Z20, Z21, Z22, Z23)
	MOVQ args_ahead(AX), R9

tap:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13
	MOVQ DI, R11

step:
	WEIGHTS_VNNI
	PREFETCHT1 (R9)
	ADDQ $64, R9
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3)
	ROW_VNNI((R13)(R8*1), Z29, Z4, Z5, Z6, Z7)
	ROW_VNNI((R13)(R8*2), Z30, Z8, Z9, Z10, Z11)
	ROW_VNNI((R11), Z31, Z12, Z13, Z14, Z15)
	ROW_VNNI((R11)(R8*1), Z28, Z16, Z17, Z18, Z19)
	ROW_VNNI((R11)(R8*2), Z29, Z20, Z21, Z22, Z23)
	ADDQ $4, R13
	ADDQ $4, R11
	DECQ CX
	JNZ  step

	ADDQ R12, SI
	ADDQ R12, DI
	DECQ R10
	JNZ  tap

	MOVQ R9, args_ahead(AX)
	LEAQ (R8)(R8*2), R9
	ADDQ R9, R9
	ADDQ R9, args_x(AX)
	LOAD_OUT
	OUT_SCALES_VNNI
	OUT_ROW_VNNI(Z0, Z1, Z2, Z3)
	OUT_ROW_VNNI(Z4, Z5, Z6, Z7)
	OUT_ROW_VNNI(Z8, Z9, Z10, Z11)
	OUT_ROW_VNNI(Z12, Z13, Z14, Z15)
	OUT_ROW_VNNI(Z16, Z17, Z18, Z19)
	OUT_ROW_VNNI(Z20, Z21, Z22, Z23)
	MOVQ SI, args_dst(AX)
	MOVQ DI, args_res(AX)
	MOVQ R10, args_rowScale(AX)
	DECQ args_blocks(AX)
	JNZ  block
	VZEROUPPER
	RET

// func singleVNNI(a *args)
// Two steps at a time into accumulators of their own, since each addition waits for the last.
TEXT ·singleVNNI(SB), NOSPLIT, $0-8
	LOAD_ROWS
	ZEROS_VNNI
	VPXORD Z4, Z4, Z4
	VPXORD Z5, Z5, Z5
	VPXORD Z6, Z6, Z6
	VPXORD Z7, Z7, Z7

tap1:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13
	SHRQ $1, CX
	JZ   odd1

step1:
	WEIGHTS_VNNI
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3)
	WEIGHTS_VNNI
	ROW_VNNI(4(R13), Z29, Z4, Z5, Z6, Z7)
	ADDQ $8, R13
	DECQ CX
	JNZ  step1

odd1:
	MOVQ  args_steps(AX), CX
	TESTQ $1, CX
	JZ    next1
	WEIGHTS_VNNI
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3)

next1:
	ADDQ R12, SI
	DECQ R10
	JNZ  tap1

	VPADDD Z4, Z0, Z0
	VPADDD Z5, Z1, Z1
	VPADDD Z6, Z2, Z2
	VPADDD Z7, Z3, Z3
	LOAD_OUT
	OUT_SCALES_VNNI
	OUT_ROW_VNNI(Z0, Z1, Z2, Z3)
	VZEROUPPER
	RET

// func quintVNNI(a *args)
// 5 rows: what is left behind blocks. 20 multiplications keep both multipliers busy as 24 do.
TEXT ·quintVNNI(SB), NOSPLIT, $0-8
	LOAD_ROWS
	ZEROS_VNNI
	COPY_VNNI(Z4, Z5, Z6, Z7)
	COPY_VNNI(Z8, Z9, Z10, Z11)
	COPY_VNNI(Z12, Z13, Z14, Z15)
	COPY_VNNI(Z16, Z17, Z18, Z19)

tap7:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13
	MOVQ DI, R11

step7:
	WEIGHTS_VNNI
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3)
	ROW_VNNI((R13)(R8*1), Z29, Z4, Z5, Z6, Z7)
	ROW_VNNI((R13)(R8*2), Z30, Z8, Z9, Z10, Z11)
	ROW_VNNI((R11), Z31, Z12, Z13, Z14, Z15)
	ROW_VNNI((R11)(R8*1), Z28, Z16, Z17, Z18, Z19)
	ADDQ $4, R13
	ADDQ $4, R11
	DECQ CX
	JNZ  step7

	ADDQ R12, SI
	ADDQ R12, DI
	DECQ R10
	JNZ  tap7

	LOAD_OUT
	OUT_SCALES_VNNI
	OUT_ROW_VNNI(Z0, Z1, Z2, Z3)
	OUT_ROW_VNNI(Z4, Z5, Z6, Z7)
	OUT_ROW_VNNI(Z8, Z9, Z10, Z11)
	OUT_ROW_VNNI(Z12, Z13, Z14, Z15)
	OUT_ROW_VNNI(Z16, Z17, Z18, Z19)
	VZEROUPPER
	RET

// func quadVNNI(a *args)
TEXT ·quadVNNI(SB), NOSPLIT, $0-8
	LOAD_ROWS
	ZEROS_VNNI
	COPY_VNNI(Z4, Z5, Z6, Z7)
	COPY_VNNI(Z8, Z9, Z10, Z11)
	COPY_VNNI(Z12, Z13, Z14, Z15)

tap6:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13
	MOVQ DI, R11

step6:
	WEIGHTS_VNNI
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3)
	ROW_VNNI((R13)(R8*1), Z29, Z4, Z5, Z6, Z7)
	ROW_VNNI((R13)(R8*2), Z30, Z8, Z9, Z10, Z11)
	ROW_VNNI((R11), Z31, Z12, Z13, Z14, Z15)
	ADDQ $4, R13
	ADDQ $4, R11
	DECQ CX
	JNZ  step6

	ADDQ R12, SI
	ADDQ R12, DI
	DECQ R10
	JNZ  tap6

	LOAD_OUT
	OUT_SCALES_VNNI
	OUT_ROW_VNNI(Z0, Z1, Z2, Z3)
	OUT_ROW_VNNI(Z4, Z5, Z6, Z7)
	OUT_ROW_VNNI(Z8, Z9, Z10, Z11)
	OUT_ROW_VNNI(Z12, Z13, Z14, Z15)
	VZEROUPPER
	RET

// func tripleVNNI(a *args)
// 3 rows: they share the weights, whose way from the third cache is what few rows wait for.
TEXT ·tripleVNNI(SB), NOSPLIT, $0-8
	LOAD_ROWS
	ZEROS_VNNI
	COPY_VNNI(Z4, Z5, Z6, Z7)
	COPY_VNNI(Z8, Z9, Z10, Z11)

tap4:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13

step4:
	WEIGHTS_VNNI
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3)
	ROW_VNNI((R13)(R8*1), Z29, Z4, Z5, Z6, Z7)
	ROW_VNNI((R13)(R8*2), Z30, Z8, Z9, Z10, Z11)
	ADDQ $4, R13
	DECQ CX
	JNZ  step4

	ADDQ R12, SI
	DECQ R10
	JNZ  tap4

	LOAD_OUT
	OUT_SCALES_VNNI
	OUT_ROW_VNNI(Z0, Z1, Z2, Z3)
	OUT_ROW_VNNI(Z4, Z5, Z6, Z7)
	OUT_ROW_VNNI(Z8, Z9, Z10, Z11)
	VZEROUPPER
	RET

// func pairVNNI(a *args)
TEXT ·pairVNNI(SB), NOSPLIT, $0-8
	LOAD_ROWS
	ZEROS_VNNI
	COPY_VNNI(Z4, Z5, Z6, Z7)

tap5:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13

step5:
	WEIGHTS_VNNI
	ROW_VNNI((R13), Z28, Z0, Z1, Z2, Z3)
	ROW_VNNI((R13)(R8*1), Z29, Z4, Z5, Z6, Z7)
	ADDQ $4, R13
	DECQ CX
	JNZ  step5

	ADDQ R12, SI
	DECQ R10
	JNZ  tap5

	LOAD_OUT
	OUT_SCALES_VNNI
	OUT_ROW_VNNI(Z0, Z1, Z2, Z3)
	OUT_ROW_VNNI(Z4, Z5, Z6, Z7)
	VZEROUPPER
	RET

// func weighVNNI(sums *[64]int32, w []int8)
// The product with activations of 1.
TEXT ·weighVNNI(SB), NOSPLIT, $0-32
	MOVQ         sums+0(FP), DI
	MOVQ         w_base+8(FP), DX
	MOVQ         w_len+16(FP), CX
	MOVL         $0x01010101, AX
	MOVQ         AX, X1
	VPBROADCASTD X1, Z28
	VPXORD       Z0, Z0, Z0
	VPXORD       Z1, Z1, Z1
	VPXORD       Z2, Z2, Z2
	VPXORD       Z3, Z3, Z3
	SHRQ         $8, CX
	JZ           done

loop:
	VPDPBUSD (DX), Z28, Z0
	VPDPBUSD 64(DX), Z28, Z1
	VPDPBUSD 128(DX), Z28, Z2
	VPDPBUSD 192(DX), Z28, Z3
	ADDQ     $256, DX
	DECQ     CX
	JNZ      loop

done:
	VMOVDQU32 Z0, (DI)
	VMOVDQU32 Z1, 64(DI)
	VMOVDQU32 Z2, 128(DI)
	VMOVDQU32 Z3, 192(DI)
	VZEROUPPER
	RET

// OUT_ROW_AVX2 adds the pairs and turns 8 sums into floats.
#define OUT_ROW_AVX2(A0, A1) \
	VBROADCASTSS (R10), Y10 \
	VPHADDD A1, A0, A0 \
	VPERMQ $0xd8, A0, A0 \
	VCVTDQ2PS A0, A0 \
	VMULPS Y10, A0, A0 \
	VMULPS (R11), A0, A0 \
	VADDPS (R12), A0, A0 \
	VMAXPS Y11, A0, A0 \
	VADDPS (DI), A0, A0 \
	VMOVUPS A0, (SI) \
	ADDQ $4, R10 \
	ADDQ R8, SI \
	ADDQ R9, DI

// func blockAVX2(a *args)
TEXT ·blockAVX2(SB), NOSPLIT, $0-8
	LOAD_ROWS
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

tap2:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13
	MOVQ DI, R11

step2:
	WEIGHTS_AVX2
	ROW_AVX2((R13), Y0, Y1)
	ROW_AVX2((R13)(R8*1), Y2, Y3)
	ROW_AVX2((R13)(R8*2), Y4, Y5)
	ROW_AVX2((R11), Y6, Y7)
	ADDQ $8, R13
	ADDQ $8, R11
	DECQ CX
	JNZ  step2

	ADDQ R12, SI
	ADDQ R12, DI
	DECQ R10
	JNZ  tap2

	LOAD_OUT
	VBROADCASTSS args_lowest(AX), Y11
	OUT_ROW_AVX2(Y0, Y1)
	OUT_ROW_AVX2(Y2, Y3)
	OUT_ROW_AVX2(Y4, Y5)
	OUT_ROW_AVX2(Y6, Y7)
	VZEROUPPER
	RET

// func singleAVX2(a *args)
TEXT ·singleAVX2(SB), NOSPLIT, $0-8
	LOAD_ROWS
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1

tap3:
	MOVQ args_steps(AX), CX
	MOVQ SI, R13

step3:
	WEIGHTS_AVX2
	ROW_AVX2((R13), Y0, Y1)
	ADDQ $8, R13
	DECQ CX
	JNZ  step3

	ADDQ R12, SI
	DECQ R10
	JNZ  tap3

	LOAD_OUT
	VBROADCASTSS args_lowest(AX), Y11
	OUT_ROW_AVX2(Y0, Y1)
	VZEROUPPER
	RET
