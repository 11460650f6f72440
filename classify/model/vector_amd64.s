// Loops over vectors of floats on x86-64. Lengths are multiples of 16. Sums of many values are kept
// as 16 partial sums and folded halves first, as kernel_plain.go does; no fused multiply-add.

#include "textflag.h"

// func maxAbsAVX2(x []float32) float32
// Without their sign floats order as integers do.
TEXT ·maxAbsAVX2(SB), NOSPLIT, $0-28
	MOVQ     x_base+0(FP), SI
	MOVQ     x_len+8(FP), CX
	VPXOR    Y0, Y0, Y0
	VPXOR    Y1, Y1, Y1
	VPCMPEQD Y2, Y2, Y2
	VPSRLD   $1, Y2, Y2
	SHRQ     $4, CX
	JZ       done

loop:
	VPAND   (SI), Y2, Y3
	VPAND   32(SI), Y2, Y4
	VPMAXUD Y3, Y0, Y0
	VPMAXUD Y4, Y1, Y1
	ADDQ    $64, SI
	DECQ    CX
	JNZ     loop

done:
	VPMAXUD      Y1, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPMAXUD      X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPMAXUD      X1, X0, X0
	VMOVD        X0, AX
	MOVL         AX, ret+24(FP)
	VZEROUPPER
	RET

// func roundAVX512(dst []byte, x []float32, inv float32)
TEXT ·roundAVX512(SB), NOSPLIT, $0-52
	MOVQ         dst_base+0(FP), DI
	MOVQ         x_base+24(FP), SI
	MOVQ         x_len+32(FP), CX
	VBROADCASTSS inv+48(FP), Z0
	MOVL         $0x80808080, AX
	VMOVD        AX, X1
	VPBROADCASTD X1, X1
	SHRQ         $4, CX
	JZ           done

loop:
	VMULPS    (SI), Z0, Z2
	VCVTPS2DQ Z2, Z2
	VPMOVDB   Z2, X2
	VPXOR     X1, X2, X2
	VMOVDQU   X2, (DI)
	ADDQ      $64, SI
	ADDQ      $16, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// func roundWideAVX2(dst []byte, x []float32, inv float32)
TEXT ·roundWideAVX2(SB), NOSPLIT, $0-52
	MOVQ         dst_base+0(FP), DI
	MOVQ         x_base+24(FP), SI
	MOVQ         x_len+32(FP), CX
	VBROADCASTSS inv+48(FP), Y0
	SHRQ         $4, CX
	JZ           done

loop:
	VMULPS    (SI), Y0, Y1
	VMULPS    32(SI), Y0, Y2
	VCVTPS2DQ Y1, Y1
	VCVTPS2DQ Y2, Y2
	VPACKSSDW Y2, Y1, Y1
	VPERMQ    $0xd8, Y1, Y1
	VMOVDQU   Y1, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// FOLD adds the 8 partial sums in Y (X its low half), halves first, into the lowest of X.
#define FOLD(Y, X, T) \
	VEXTRACTF128 $1, Y, T \
	VADDPS T, X, X \
	VPSHUFD $0x4e, X, T \
	VADDPS T, X, X \
	VPSHUFD $0xb1, X, T \
	VADDPS T, X, X

// func momentsAVX2(x []float32) (sum, squares float32)
TEXT ·momentsAVX2(SB), NOSPLIT, $0-32
	MOVQ  x_base+0(FP), SI
	MOVQ  x_len+8(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	SHRQ  $4, CX
	JZ    done

loop:
	VMOVUPS (SI), Y4
	VMOVUPS 32(SI), Y5
	VADDPS  Y4, Y0, Y0
	VADDPS  Y5, Y1, Y1
	VMULPS  Y4, Y4, Y4
	VMULPS  Y5, Y5, Y5
	VADDPS  Y4, Y2, Y2
	VADDPS  Y5, Y3, Y3
	ADDQ    $64, SI
	DECQ    CX
	JNZ     loop

done:
	VADDPS Y1, Y0, Y0
	VADDPS Y3, Y2, Y2
	FOLD(Y0, X0, X4)
	FOLD(Y2, X2, X4)
	VMOVSS X0, sum+24(FP)
	VMOVSS X2, squares+28(FP)
	VZEROUPPER
	RET

// func momentsAVX512(x []float32) (sum, squares float32)
TEXT ·momentsAVX512(SB), NOSPLIT, $0-32
	MOVQ   x_base+0(FP), SI
	MOVQ   x_len+8(FP), CX
	VPXORD Z0, Z0, Z0
	VPXORD Z2, Z2, Z2
	SHRQ   $4, CX
	JZ     done

loop:
	VMOVUPS (SI), Z4
	VADDPS  Z4, Z0, Z0
	VMULPS  Z4, Z4, Z4
	VADDPS  Z4, Z2, Z2
	ADDQ    $64, SI
	DECQ    CX
	JNZ     loop

done:
	VEXTRACTF64X4 $1, Z0, Y1
	VEXTRACTF64X4 $1, Z2, Y3
	VADDPS        Y1, Y0, Y0
	VADDPS        Y3, Y2, Y2
	FOLD(Y0, X0, X4)
	FOLD(Y2, X2, X4)
	VMOVSS        X0, sum+24(FP)
	VMOVSS        X2, squares+28(FP)
	VZEROUPPER
	RET

// func addScaledAVX2(dst, x []float32, mean, factor float32)
TEXT ·addScaledAVX2(SB), NOSPLIT, $0-56
	MOVQ         dst_base+0(FP), DI
	MOVQ         x_base+24(FP), SI
	MOVQ         x_len+32(FP), CX
	VBROADCASTSS mean+48(FP), Y0
	VBROADCASTSS factor+52(FP), Y1
	SHRQ         $3, CX
	JZ           done

loop:
	VMOVUPS (SI), Y2
	VSUBPS  Y0, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VADDPS  (DI), Y2, Y2
	VMOVUPS Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     loop

done:
	VZEROUPPER
	RET

// func addScaledAVX512(dst, x []float32, mean, factor float32)
TEXT ·addScaledAVX512(SB), NOSPLIT, $0-56
	MOVQ         dst_base+0(FP), DI
	MOVQ         x_base+24(FP), SI
	MOVQ         x_len+32(FP), CX
	VBROADCASTSS mean+48(FP), Z0
	VBROADCASTSS factor+52(FP), Z1
	SHRQ         $4, CX
	JZ           done

loop:
	VMOVUPS (SI), Z2
	VSUBPS  Z0, Z2, Z2
	VMULPS  Z1, Z2, Z2
	VADDPS  (DI), Z2, Z2
	VMOVUPS Z2, (DI)
	ADDQ    $64, SI
	ADDQ    $64, DI
	DECQ    CX
	JNZ     loop

done:
	VZEROUPPER
	RET

// func normaliseAVX2(x, gain, bias []float32, mean, factor float32)
TEXT ·normaliseAVX2(SB), NOSPLIT, $0-80
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	MOVQ         gain_base+24(FP), DX
	MOVQ         bias_base+48(FP), BX
	VBROADCASTSS mean+72(FP), Y0
	VBROADCASTSS factor+76(FP), Y1
	SHRQ         $3, CX
	JZ           done

loop:
	VMOVUPS (SI), Y2
	VSUBPS  Y0, Y2, Y2
	VMULPS  Y1, Y2, Y2
	VMULPS  (DX), Y2, Y2
	VADDPS  (BX), Y2, Y2
	VMOVUPS Y2, (SI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, BX
	DECQ    CX
	JNZ     loop

done:
	VZEROUPPER
	RET

// func normaliseAVX512(x, gain, bias []float32, mean, factor float32)
TEXT ·normaliseAVX512(SB), NOSPLIT, $0-80
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	MOVQ         gain_base+24(FP), DX
	MOVQ         bias_base+48(FP), BX
	VBROADCASTSS mean+72(FP), Z0
	VBROADCASTSS factor+76(FP), Z1
	SHRQ         $4, CX
	JZ           done

loop:
	VMOVUPS (SI), Z2
	VSUBPS  Z0, Z2, Z2
	VMULPS  Z1, Z2, Z2
	VMULPS  (DX), Z2, Z2
	VADDPS  (BX), Z2, Z2
	VMOVUPS Z2, (SI)
	ADDQ    $64, SI
	ADDQ    $64, DX
	ADDQ    $64, BX
	DECQ    CX
	JNZ     loop

done:
	VZEROUPPER
	RET

// DECODE_AVX2 looks up the low 4 bits of the 8 numbers in Y: the code is in Y0 and Y1.
#define DECODE_AVX2(Y, AT) \
	VPERMPS Y0, Y, Y4 \
	VPERMPS Y1, Y, Y5 \
	VPSLLD $28, Y, Y6 \
	VBLENDVPS Y6, Y5, Y4, Y4 \
	VMOVUPS Y4, AT(DI)

// func decodeAVX2(dst []float32, row []byte, code *[16]float32)
TEXT ·decodeAVX2(SB), NOSPLIT, $0-56
	MOVQ         dst_base+0(FP), DI
	MOVQ         row_base+24(FP), SI
	MOVQ         row_len+32(FP), CX
	MOVQ         code+48(FP), AX
	VMOVUPS      (AX), Y0
	VMOVUPS      32(AX), Y1
	SHRQ         $4, CX
	JZ           done

loop:
	VPMOVZXBD (SI), Y2
	VPMOVZXBD 8(SI), Y3
	DECODE_AVX2(Y2, 0)
	DECODE_AVX2(Y3, 32)
	VPSRLD    $4, Y2, Y2
	VPSRLD    $4, Y3, Y3
	DECODE_AVX2(Y2, 64)
	DECODE_AVX2(Y3, 96)
	ADDQ      $16, SI
	ADDQ      $128, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// func decodeAVX512(dst []float32, row []byte, code *[16]float32)
// The lookup reads the low 4 bits of each number.
TEXT ·decodeAVX512(SB), NOSPLIT, $0-56
	MOVQ         dst_base+0(FP), DI
	MOVQ         row_base+24(FP), SI
	MOVQ         row_len+32(FP), CX
	MOVQ         code+48(FP), AX
	VMOVUPS      (AX), Z0
	SHRQ         $4, CX
	JZ           done

loop:
	VPMOVZXBD (SI), Z2
	VPERMPS   Z0, Z2, Z3
	VPSRLD    $4, Z2, Z2
	VPERMPS   Z0, Z2, Z4
	VMOVUPS   Z3, (DI)
	VMOVUPS   Z4, 64(DI)
	ADDQ      $16, SI
	ADDQ      $128, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// func bringLines(b []byte)
TEXT ·bringLines(SB), NOSPLIT, $0-24
	MOVQ b_base+0(FP), SI
	MOVQ b_len+8(FP), CX
	ADDQ $63, CX
	SHRQ $6, CX
	JZ   done

loop:
	PREFETCHT1 (SI)
	ADDQ $64, SI
	DECQ CX
	JNZ  loop

done:
	RET

// func widenAVX2(dst []float32, row []byte, scale, low float32)
TEXT ·widenAVX2(SB), NOSPLIT, $0-56
	MOVQ         dst_base+0(FP), DI
	MOVQ         row_base+24(FP), SI
	MOVQ         row_len+32(FP), CX
	VBROADCASTSS scale+48(FP), Y0
	VBROADCASTSS low+52(FP), Y1
	SHRQ         $3, CX
	JZ           done

loop:
	VPMOVZXBD (SI), Y2
	VCVTDQ2PS Y2, Y2
	VMULPS    Y0, Y2, Y2
	VADDPS    Y1, Y2, Y2
	VMOVUPS   Y2, (DI)
	ADDQ      $8, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// SPREAD_Y adds 8 numbers of a spread; HIDDEN_Y ends those of a branch: ReLU, the token's own
// inputs, and the largest so far. Without their sign floats order as integers do.
#define SPREAD_Y(P, AT, SUM, TO) \
	VPMOVSXWD AT(P), Y1 \
	VPADDD SUM, Y1, TO

#define HIDDEN_Y(OWN, AT) \
	VPMOVSXWD OWN(R10), Y1 \
	VPMAXSD Y6, Y0, Y0 \
	VPADDD Y1, Y0, Y0 \
	VCVTDQ2PS Y0, Y0 \
	VMULPS Y7, Y0, Y0 \
	VMOVUPS Y0, AT(DI) \
	VPAND Y4, Y0, Y0 \
	VPMAXUD Y0, Y5, Y5

// func gatherAVX2(dst []float32, bias []int32, of *[5]*spread, next *spread, step float32) (top float32)
TEXT ·gatherAVX2(SB), NOSPLIT, $0-76
	MOVQ         dst_base+0(FP), DI
	MOVQ         bias_base+24(FP), SI
	MOVQ         of+48(FP), AX
	MOVQ         0(AX), R8
	MOVQ         8(AX), R9
	MOVQ         16(AX), R10
	MOVQ         24(AX), R11
	MOVQ         32(AX), R12
	MOVQ         next+56(FP), R13
	VBROADCASTSS step+64(FP), Y7
	VPXOR        Y6, Y6, Y6
	VPXOR        Y5, Y5, Y5
	VPCMPEQD     Y4, Y4, Y4
	VPSRLD       $1, Y4, Y4
	MOVQ         $256/8, CX

loop:
	SPREAD_Y(R11, 512, 0(SI), Y0)
	SPREAD_Y(R10, 2048, Y0, Y0)
	HIDDEN_Y(5120, 0)
	SPREAD_Y(R11, 1024, 1024(SI), Y0)
	SPREAD_Y(R10, 2560, Y0, Y0)
	SPREAD_Y(R9, 3584, Y0, Y0)
	HIDDEN_Y(5632, 1024)
	SPREAD_Y(R12, 0, 2048(SI), Y0)
	SPREAD_Y(R11, 1536, Y0, Y0)
	SPREAD_Y(R10, 3072, Y0, Y0)
	SPREAD_Y(R9, 4096, Y0, Y0)
	SPREAD_Y(R8, 4608, Y0, Y0)
	HIDDEN_Y(6144, 2048)
	PREFETCHT0 0(R13)
	PREFETCHT0 64(R13)
	PREFETCHT0 128(R13)
	PREFETCHT0 192(R13)
	ADDQ $(4*64), R13
	ADDQ $16, R8
	ADDQ $16, R9
	ADDQ $16, R10
	ADDQ $16, R11
	ADDQ $16, R12
	ADDQ $32, SI
	ADDQ $32, DI
	DECQ CX
	JNZ  loop

	VEXTRACTI128  $1, Y5, X0
	VPMAXUD       X0, X5, X5
	VPSHUFD       $0x4e, X5, X0
	VPMAXUD       X0, X5, X5
	VPSHUFD       $0xb1, X5, X0
	VPMAXUD       X0, X5, X5
	VMOVSS        X5, top+72(FP)
	VZEROUPPER
	RET

// SPREAD_Z adds 16 numbers of a spread; HIDDEN_Z ends those of a branch: ReLU, the token's own
// inputs, and the largest so far. Without their sign floats order as integers do.
#define SPREAD_Z(P, AT, SUM, TO) \
	VPMOVSXWD AT(P), Z1 \
	VPADDD SUM, Z1, TO

#define HIDDEN_Z(OWN, AT) \
	VPMOVSXWD OWN(R10), Z1 \
	VPMAXSD Z6, Z0, Z0 \
	VPADDD Z1, Z0, Z0 \
	VCVTDQ2PS Z0, Z0 \
	VMULPS Z7, Z0, Z0 \
	VMOVUPS Z0, AT(DI) \
	VPANDD Z4, Z0, Z0 \
	VPMAXUD Z0, Z5, Z5

// func gatherAVX512(dst []float32, bias []int32, of *[5]*spread, next *spread, step float32) (top float32)
TEXT ·gatherAVX512(SB), NOSPLIT, $0-76
	MOVQ         dst_base+0(FP), DI
	MOVQ         bias_base+24(FP), SI
	MOVQ         of+48(FP), AX
	MOVQ         0(AX), R8
	MOVQ         8(AX), R9
	MOVQ         16(AX), R10
	MOVQ         24(AX), R11
	MOVQ         32(AX), R12
	MOVQ         next+56(FP), R13
	VBROADCASTSS step+64(FP), Z7
	VPXORD       Z6, Z6, Z6
	VPXORD       Z5, Z5, Z5
	MOVL         $0x7fffffff, AX
	VMOVD        AX, X4
	VPBROADCASTD X4, Z4
	MOVQ         $256/16, CX

loop:
	SPREAD_Z(R11, 512, 0(SI), Z0)
	SPREAD_Z(R10, 2048, Z0, Z0)
	HIDDEN_Z(5120, 0)
	SPREAD_Z(R11, 1024, 1024(SI), Z0)
	SPREAD_Z(R10, 2560, Z0, Z0)
	SPREAD_Z(R9, 3584, Z0, Z0)
	HIDDEN_Z(5632, 1024)
	SPREAD_Z(R12, 0, 2048(SI), Z0)
	SPREAD_Z(R11, 1536, Z0, Z0)
	SPREAD_Z(R10, 3072, Z0, Z0)
	SPREAD_Z(R9, 4096, Z0, Z0)
	SPREAD_Z(R8, 4608, Z0, Z0)
	HIDDEN_Z(6144, 2048)
	PREFETCHT0 0(R13)
	PREFETCHT0 64(R13)
	PREFETCHT0 128(R13)
	PREFETCHT0 192(R13)
	PREFETCHT0 256(R13)
	PREFETCHT0 320(R13)
	PREFETCHT0 384(R13)
	ADDQ $(7*64), R13
	ADDQ $32, R8
	ADDQ $32, R9
	ADDQ $32, R10
	ADDQ $32, R11
	ADDQ $32, R12
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  loop

	VEXTRACTI64X4 $1, Z5, Y0
	VPMAXUD       Y0, Y5, Y5
	VEXTRACTI128  $1, Y5, X0
	VPMAXUD       X0, X5, X5
	VPSHUFD       $0x4e, X5, X0
	VPMAXUD       X0, X5, X5
	VPSHUFD       $0xb1, X5, X0
	VPMAXUD       X0, X5, X5
	VMOVSS        X5, top+72(FP)
	VZEROUPPER
	RET

// func fixAVX2(dst []int16, x []float32, factor float32)
// The bounds are 32767 and -32767 as floats.
TEXT ·fixAVX2(SB), NOSPLIT, $0-52
	MOVQ         dst_base+0(FP), DI
	MOVQ         x_base+24(FP), SI
	MOVQ         x_len+32(FP), CX
	VBROADCASTSS factor+48(FP), Y0
	MOVL         $0x46fffe00, AX
	VMOVD        AX, X1
	VPBROADCASTD X1, Y1
	MOVL         $0xc6fffe00, AX
	VMOVD        AX, X2
	VPBROADCASTD X2, Y2
	SHRQ         $4, CX
	JZ           done

loop:
	VMULPS    (SI), Y0, Y3
	VMULPS    32(SI), Y0, Y4
	VMINPS    Y1, Y3, Y3
	VMINPS    Y1, Y4, Y4
	VMAXPS    Y2, Y3, Y3
	VMAXPS    Y2, Y4, Y4
	VCVTPS2DQ Y3, Y3
	VCVTPS2DQ Y4, Y4
	VPACKSSDW Y4, Y3, Y3
	VPERMQ    $0xd8, Y3, Y3
	VMOVDQU   Y3, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// func tanhAVX2(x []float32, terms *[13]float32)
// The terms are broadcast in the loop: there are more of them than registers.
#define TERM_AVX2(AT, Y) \
	VMULPS Y1, Y, Y \
	VBROADCASTSS AT(AX), Y4 \
	VADDPS Y4, Y, Y

// The quotient of polynomials of Y0, whose first terms are Y7 and Y8.
#define RATIONAL_AVX2 \
	VMULPS Y0, Y0, Y1 \
	VMOVAPS Y7, Y2 \
	VMOVAPS Y8, Y3 \
	TERM_AVX2(12, Y2) \
	TERM_AVX2(40, Y3) \
	TERM_AVX2(16, Y2) \
	TERM_AVX2(44, Y3) \
	TERM_AVX2(20, Y2) \
	TERM_AVX2(48, Y3) \
	TERM_AVX2(24, Y2) \
	TERM_AVX2(28, Y2) \
	TERM_AVX2(32, Y2) \
	VMULPS Y2, Y0, Y0 \
	VDIVPS Y3, Y0, Y0

TEXT ·tanhAVX2(SB), NOSPLIT, $0-32
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	MOVQ         terms+24(FP), AX
	VBROADCASTSS (AX), Y5
	VBROADCASTSS 4(AX), Y6
	VBROADCASTSS 8(AX), Y7
	VBROADCASTSS 36(AX), Y8
	SHRQ         $3, CX
	JZ           done

loop:
	VMOVUPS   (SI), Y0
	VMAXPS    Y5, Y0, Y0
	VMINPS    Y6, Y0, Y0
	RATIONAL_AVX2
	VMOVUPS   Y0, (SI)
	ADDQ      $32, SI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// func tanhAVX512(x []float32, terms *[13]float32)
#define TERM_AVX512(AT, Z) \
	VMULPS Z1, Z, Z \
	VADDPS.BCST AT(AX), Z, Z

// The same of Z0.
#define RATIONAL_AVX512 \
	VMULPS Z0, Z0, Z1 \
	VMOVAPS Z7, Z2 \
	VMOVAPS Z8, Z3 \
	TERM_AVX512(12, Z2) \
	TERM_AVX512(40, Z3) \
	TERM_AVX512(16, Z2) \
	TERM_AVX512(44, Z3) \
	TERM_AVX512(20, Z2) \
	TERM_AVX512(48, Z3) \
	TERM_AVX512(24, Z2) \
	TERM_AVX512(28, Z2) \
	TERM_AVX512(32, Z2) \
	VMULPS Z2, Z0, Z0 \
	VDIVPS Z3, Z0, Z0

TEXT ·tanhAVX512(SB), NOSPLIT, $0-32
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	MOVQ         terms+24(FP), AX
	VBROADCASTSS 8(AX), Z7
	VBROADCASTSS 36(AX), Z8
	SHRQ         $4, CX
	JZ           done

loop:
	VMOVUPS     (SI), Z0
	VMAXPS.BCST (AX), Z0, Z0
	VMINPS.BCST 4(AX), Z0, Z0
	RATIONAL_AVX512
	VMOVUPS     Z0, (SI)
	ADDQ        $64, SI
	DECQ        CX
	JNZ         loop

done:
	VZEROUPPER
	RET

// func geluAVX2(x []float32, terms *[13]float32)
// As tanhAVX2, and then (it + 1) * (x * 0.5).
TEXT ·geluAVX2(SB), NOSPLIT, $0-32
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	MOVQ         terms+24(FP), AX
	VBROADCASTSS (AX), Y5
	VBROADCASTSS 4(AX), Y6
	VBROADCASTSS 8(AX), Y7
	VBROADCASTSS 36(AX), Y8
	VBROADCASTSS 48(AX), Y9
	MOVL         $0x3f000000, DX
	VMOVD        DX, X10
	VBROADCASTSS X10, Y10
	SHRQ         $3, CX
	JZ           done

loop:
	VMOVUPS (SI), Y11
	VMAXPS  Y5, Y11, Y0
	VMINPS  Y6, Y0, Y0
	RATIONAL_AVX2
	VADDPS  Y9, Y0, Y0
	VMULPS  Y10, Y11, Y11
	VMULPS  Y11, Y0, Y0
	VMOVUPS Y0, (SI)
	ADDQ    $32, SI
	DECQ    CX
	JNZ     loop

done:
	VZEROUPPER
	RET

// func geluAVX512(x []float32, terms *[13]float32)
TEXT ·geluAVX512(SB), NOSPLIT, $0-32
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	MOVQ         terms+24(FP), AX
	VBROADCASTSS 8(AX), Z7
	VBROADCASTSS 36(AX), Z8
	VBROADCASTSS 48(AX), Z9
	MOVL         $0x3f000000, DX
	VMOVD        DX, X10
	VBROADCASTSS X10, Z10
	SHRQ         $4, CX
	JZ           done

loop:
	VMOVUPS     (SI), Z11
	VMAXPS.BCST (AX), Z11, Z0
	VMINPS.BCST 4(AX), Z0, Z0
	RATIONAL_AVX512
	VADDPS      Z9, Z0, Z0
	VMULPS      Z10, Z11, Z11
	VMULPS      Z11, Z0, Z0
	VMOVUPS     Z0, (SI)
	ADDQ        $64, SI
	DECQ        CX
	JNZ         loop

done:
	VZEROUPPER
	RET

// func largestAVX2(x []float32) float32
TEXT ·largestAVX2(SB), NOSPLIT, $0-28
	MOVQ    x_base+0(FP), SI
	MOVQ    x_len+8(FP), CX
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	SHRQ    $4, CX
	DECQ    CX
	JZ      done

loop:
	ADDQ   $64, SI
	VMAXPS (SI), Y0, Y0
	VMAXPS 32(SI), Y1, Y1
	DECQ   CX
	JNZ    loop

done:
	VMAXPS       Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VMAXPS       X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VMAXPS       X1, X0, X0
	VMOVSS       X0, ret+24(FP)
	VZEROUPPER
	RET

// func expAVX2(x []float32, top, factor float32, terms *[12]float32) float32
// Y0 is what is left of the exponent, Y3 its whole part, Y2 the polynomial. The two halves of the 16 sums are
// Y12 and Y13, which take turns.
TEXT ·expAVX2(SB), NOSPLIT, $0-44
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	VBROADCASTSS top+24(FP), Y5
	VBROADCASTSS factor+28(FP), Y6
	MOVQ         terms+32(FP), AX
	VBROADCASTSS (AX), Y7
	VBROADCASTSS 4(AX), Y8
	VBROADCASTSS 8(AX), Y9
	VBROADCASTSS 12(AX), Y10
	VBROADCASTSS 16(AX), Y14
	MOVL         $0x4b400000, DX
	VMOVD        DX, X11
	VBROADCASTSS X11, Y11
	VXORPS       Y12, Y12, Y12
	VXORPS       Y13, Y13, Y13
	SHRQ         $3, CX

loop:
	VMOVUPS   (SI), Y0
	VSUBPS    Y5, Y0, Y0
	VMULPS    Y6, Y0, Y0
	VMAXPS    Y7, Y0, Y1
	VMULPS    Y8, Y1, Y3
	VADDPS    Y11, Y3, Y3
	VSUBPS    Y11, Y3, Y3
	VMULPS    Y9, Y3, Y0
	VSUBPS    Y0, Y1, Y1
	VMULPS    Y10, Y3, Y0
	VSUBPS    Y0, Y1, Y1
	VMOVAPS   Y14, Y2
	TERM_AVX2(20, Y2)
	TERM_AVX2(24, Y2)
	TERM_AVX2(28, Y2)
	TERM_AVX2(32, Y2)
	TERM_AVX2(36, Y2)
	TERM_AVX2(40, Y2)
	TERM_AVX2(44, Y2)
	VCVTPS2DQ Y3, Y3
	VPSLLD    $23, Y3, Y3
	VPADDD    Y3, Y2, Y2
	VMOVUPS   Y2, (SI)
	VADDPS    Y2, Y12, Y0
	VMOVAPS   Y13, Y12
	VMOVAPS   Y0, Y13
	ADDQ      $32, SI
	DECQ      CX
	JNZ       loop

	VADDPS     Y13, Y12, Y12
	FOLD(Y12, X12, X4)
	VMOVSS     X12, ret+40(FP)
	VZEROUPPER
	RET

// func expAVX512(x []float32, top, factor float32, terms *[12]float32) float32
TEXT ·expAVX512(SB), NOSPLIT, $0-44
	MOVQ         x_base+0(FP), SI
	MOVQ         x_len+8(FP), CX
	VBROADCASTSS top+24(FP), Z5
	VBROADCASTSS factor+28(FP), Z6
	MOVQ         terms+32(FP), AX
	VBROADCASTSS 16(AX), Z14
	MOVL         $0x4b400000, DX
	VMOVD        DX, X11
	VBROADCASTSS X11, Z11
	VPXORD       Z12, Z12, Z12
	SHRQ         $4, CX

loop:
	VMOVUPS     (SI), Z0
	VSUBPS      Z5, Z0, Z0
	VMULPS      Z6, Z0, Z0
	VMAXPS.BCST (AX), Z0, Z1
	VMULPS.BCST 4(AX), Z1, Z3
	VADDPS      Z11, Z3, Z3
	VSUBPS      Z11, Z3, Z3
	VMULPS.BCST 8(AX), Z3, Z0
	VSUBPS      Z0, Z1, Z1
	VMULPS.BCST 12(AX), Z3, Z0
	VSUBPS      Z0, Z1, Z1
	VMOVAPS     Z14, Z2
	TERM_AVX512(20, Z2)
	TERM_AVX512(24, Z2)
	TERM_AVX512(28, Z2)
	TERM_AVX512(32, Z2)
	TERM_AVX512(36, Z2)
	TERM_AVX512(40, Z2)
	TERM_AVX512(44, Z2)
	VCVTPS2DQ   Z3, Z3
	VPSLLD      $23, Z3, Z3
	VPADDD      Z3, Z2, Z2
	VMOVUPS     Z2, (SI)
	VADDPS      Z2, Z12, Z12
	ADDQ        $64, SI
	DECQ        CX
	JNZ         loop

	VEXTRACTF64X4 $1, Z12, Y1
	VADDPS        Y1, Y12, Y12
	FOLD(Y12, X12, X4)
	VMOVSS        X12, ret+40(FP)
	VZEROUPPER
	RET
