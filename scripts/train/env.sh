# Sourced by the scripts beside it: the same rows give the same weights, to the byte, on every x86-64 processor with
# AVX2. One thread, and the loops for AVX2 where the libraries would choose by the processor: sums are added up in
# another order by each, and after ten thousand steps the nets are others.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONHASHSEED=0
export OPENBLAS_CORETYPE=Haswell # numpy, scipy
export NPY_DISABLE_CPU_FEATURES="AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
export MKL_CBWR=COMPATIBLE ATEN_CPU_CAPABILITY=avx2 # torch
