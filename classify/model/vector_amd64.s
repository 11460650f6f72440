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

// func addWideAVX2(dst []int32, src []int16)
TEXT ·addWideAVX2(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ src_base+24(FP), SI
	MOVQ src_len+32(FP), CX
	SHRQ $4, CX
	JZ   done

loop:
	VPMOVSXWD (SI), Y0
	VPMOVSXWD 16(SI), Y1
	VPADDD    (DI), Y0, Y0
	VPADDD    32(DI), Y1, Y1
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// func addWideAVX512(dst []int32, src []int16)
TEXT ·addWideAVX512(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ src_base+24(FP), SI
	MOVQ src_len+32(FP), CX
	SHRQ $4, CX
	JZ   done

loop:
	VPMOVSXWD (SI), Z0
	VPADDD    (DI), Z0, Z0
	VMOVDQU32 Z0, (DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	DECQ      CX
	JNZ       loop

done:
	VZEROUPPER
	RET

// func rectifyAVX2(dst []float32, sums []int32, own []int16, step float32)
TEXT ·rectifyAVX2(SB), NOSPLIT, $0-76
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), CX
	MOVQ         sums_base+24(FP), SI
	MOVQ         own_base+48(FP), DX
	VBROADCASTSS step+72(FP), Y0
	VPXOR        Y1, Y1, Y1
	SHRQ         $3, CX
	JZ           done

loop:
	VPMAXSD   (SI), Y1, Y2
	VPMOVSXWD (DX), Y3
	VPADDD    Y3, Y2, Y2
	VCVTDQ2PS Y2, Y2
	VMULPS    Y0, Y2, Y2
	VMOVUPS   Y2, (DI)
	ADDQ      $32, SI
	ADDQ      $16, DX
	ADDQ      $32, DI
	DECQ      CX
	JNZ       loop

done:
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
	VMULPS    Y0, Y0, Y1
	VMOVAPS   Y7, Y2
	VMOVAPS   Y8, Y3
	TERM_AVX2(12, Y2)
	TERM_AVX2(40, Y3)
	TERM_AVX2(16, Y2)
	TERM_AVX2(44, Y3)
	TERM_AVX2(20, Y2)
	TERM_AVX2(48, Y3)
	TERM_AVX2(24, Y2)
	TERM_AVX2(28, Y2)
	TERM_AVX2(32, Y2)
	VMULPS    Y2, Y0, Y0
	VDIVPS    Y3, Y0, Y0
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
	VMULPS      Z0, Z0, Z1
	VMOVAPS     Z7, Z2
	VMOVAPS     Z8, Z3
	TERM_AVX512(12, Z2)
	TERM_AVX512(40, Z3)
	TERM_AVX512(16, Z2)
	TERM_AVX512(44, Z3)
	TERM_AVX512(20, Z2)
	TERM_AVX512(48, Z3)
	TERM_AVX512(24, Z2)
	TERM_AVX512(28, Z2)
	TERM_AVX512(32, Z2)
	VMULPS      Z2, Z0, Z0
	VDIVPS      Z3, Z0, Z0
	VMOVUPS     Z0, (SI)
	ADDQ        $64, SI
	DECQ        CX
	JNZ         loop

done:
	VZEROUPPER
	RET
