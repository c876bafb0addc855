#!/usr/bin/env bash
# Several sets of records at once on one GPU: stopped after SECONDS, then packed, finished runs and others.
#
#     experiments/records.sh DATA OUT SECONDS modelnet10:4 scaled-digits:2
#
# A set and how many of its runs to train at the same time. DATA has the folders mnist, fashion and pcam, and the files
# modelnet10.npz, adrenal-28.npz, … OUT/records.tgz unpacks below experiments/. Runs stay in runs/: the same command again
# goes on where this one was stopped. SEEDS, OPTIONS and COMMIT may be set beforehand.
set -u
data=$1 out=$2 seconds=$3
shift 3
packed=$(mktemp -d)
for one in "$@"; do
    name=${one%:*}
    case $name in
        pcam*) from=$data/pcam ;;
        *fashion*) from=$data/fashion ;;
        *digits* | rotmnist*) from=$data/mnist ;;
        *) from=$data/$name.npz ;;
    esac
    # shellcheck disable=SC2086 # options are several words
    timeout -k 25 "$seconds" python3 -m liespline.lab.cli sweep records --set "$name" --data "$from" \
        --jobs "${one#*:}" --seeds "${SEEDS:-3}" --out "runs/records-$name" ${OPTIONS:-} >"$packed/$name.log" 2>&1 &
done
wait
for one in "$@"; do
    name=${one%:*}
    python3 experiments/pack.py "runs/records-$name" "$packed/$name.tar" ${COMMIT:+--commit "$COMMIT"} &&
        tar -xf "$packed/$name.tar" -C "$packed" && rm "$packed/$name.tar"
done
mkdir -p "$out"
tar -czf "$out/records.tgz" -C "$packed" .
tail -n 3 "$packed"/*.log
