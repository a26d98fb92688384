#!/bin/sh
# Compiles kernels.cu for every chip of the tests: NVCC FATBINARY SOURCE OUTDIR; NVCC may be several words. Leaves smNN.cubin, smNN.log (what ptxas
# says of each kernel), sm90.ptx, and one fatbin per compression mode.
set -e
nvcc=$1 fatbinary=$2 source=$3 out=$4
mkdir -p "$out"
for sm in 75 80 90 100; do
  $nvcc -cubin -arch=sm_$sm -Xptxas -v -o "$out/sm$sm.cubin" "$source" 2> "$out/sm$sm.log"
done
$nvcc -ptx -arch=compute_90 -o "$out/sm90.ptx" "$source"
for mode in none speed balance size; do
  "$fatbinary" --create="$out/$mode.fatbin" -64 --compress-mode=$mode \
    --image3=kind=elf,sm=75,file="$out/sm75.cubin" --image3=kind=elf,sm=80,file="$out/sm80.cubin" \
    --image3=kind=elf,sm=90,file="$out/sm90.cubin" --image3=kind=ptx,sm=90,file="$out/sm90.ptx"
done
touch "$out/done"
