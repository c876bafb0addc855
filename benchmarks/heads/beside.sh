# escnn's C_16 and D_16 networks beside ours on rotated MNIST, one GPU: bash benchmarks/heads/beside.sh MNIST OUT [SECONDS [OPTIONS]]
# Training first, six runs at once; then each network alone on the GPU, compiled and as it is, for its time per epoch
# (of 3,000 digits). escnn and what it wants must be importable.
set -u
mnist=$1 out=$2 seconds=${3:-230} more=("${@:4}")
export PYTHONPATH=src:.:${PYTHONPATH:-} PYTHONWARNINGS=ignore PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2 TORCHINDUCTOR_COMPILE_THREADS=2
# escnn solves for its bases once and keeps them on disk.
python3 -c "from benchmarks.heads.rivals import Escnn; Escnn((2,) * 6, mirror=True)" || exit 1
run() { python3 -m benchmarks.heads.run "$mnist" "$@" --batch 128 --lr 5e-3 "${more[@]}" 2>&1; }
run "$out/beside.json" --only "ours, ;escnn, " --epochs 16 --seeds 3 --all-seeds-first --processes 6 --seconds "$seconds"
for how in "" --no-compile; do
    timeout -k 5 60 python3 -m benchmarks.heads.run "$mnist" "$out/alone$how.json" --only "16, cue" --epochs 5 --seeds 1 \
        --batch 128 --lr 5e-3 --limit 3000 --processes 1 --seconds 200 $how "${more[@]}" 2>&1
done
