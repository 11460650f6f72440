// What the kernels of dense layers and of convolutions have in common. DX walks over the weights of a tile, a step of 4
// inputs of 64 outputs at a time.

// WEIGHTS_VNNI takes a step's weights, for ROW_VNNI.
#define WEIGHTS_VNNI \
	VMOVDQU32 (DX), Z24 \
	VMOVDQU32 64(DX), Z25 \
	VMOVDQU32 128(DX), Z26 \
	VMOVDQU32 192(DX), Z27 \
	ADDQ $256, DX

// ROW_VNNI multiplies the 4 activations at X with 4 inputs of 64 outputs.
#define ROW_VNNI(X, Z, A0, A1, A2, A3) \
	VPBROADCASTD X, Z \
	VPDPBUSD Z24, Z, A0 \
	VPDPBUSD Z25, Z, A1 \
	VPDPBUSD Z26, Z, A2 \
	VPDPBUSD Z27, Z, A3

// ROW_AVX2 multiplies the 4 activations at X with 4 inputs of 8 outputs: pairs of products.
#define ROW_AVX2(X, A0, A1) \
	VPBROADCASTQ X, Y10 \
	VPMADDWD Y8, Y10, Y14 \
	VPMADDWD Y9, Y10, Y15 \
	VPADDD Y14, A0, A0 \
	VPADDD Y15, A1, A1

// WEIGHTS_AVX2 takes 8 outputs of a step, for ROW_AVX2.
#define WEIGHTS_AVX2 \
	VPMOVSXBW (DX), Y8 \
	VPMOVSXBW 16(DX), Y9 \
	ADDQ $256, DX
