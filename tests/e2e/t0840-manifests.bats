# SPDX-License-Identifier: BSD-3-Clause
# The manifests of docs/k8s are what Kubernetes's published schema allows, and what pmi-start needs of them; what the first of them
# runs does what docs/kubernetes.md says.
load helpers
load pods

folder=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
check=$folder/tests/k8s/check.py

setup_file() { need_hosts 4; }

# spoilt SED WORDS [NAME]: that manifest, by default the first, changed like that, is to be refused with these words.
spoilt() {
    local file=$BATS_TEST_TMPDIR/spoilt-$((${#words[@]} + 100)).yaml from=$folder/docs/k8s/${3:-hello}.yaml
    sed "$1" "$from" >"$file"
    ! cmp -s "$file" "$from"
    words[$file]=$2
}
declare -gA words=()

# All of them at once, as Python takes its time to start.
all_refused() {
    local file
    run python3 "$check" "${!words[@]}"
    stderr=''
    [ "$status" = 1 ]
    for file in "${!words[@]}"; do
        grep -F "$file: " <<<"$output" | grep -qF -e "${words[$file]}" ||
            show_run "$file should be refused with '${words[$file]}'"
    done
}

@test "all manifests are right, and the check sees what is not" {
    run python3 "$check" "$folder"/docs/k8s/*.yaml
    stderr=''
    [ "$status" = 0 ] && [ -z "$output" ] || show_run "manifests"
    spoilt 's/completionMode/completionmode/' "'completionmode' was unexpected"
    spoilt 's/completions: 4/completions: four/' "'four' is not of type 'integer'"
    spoilt 's/^  template:/  templat:/' "'template' is a required property"
    spoilt 's/drop: \[ALL\]/drop: ALL/' "'ALL' is not of type 'array'"
    spoilt 's/^apiVersion: v1/apiVersion: v2/' 'v2 Service is not in the schema'
    spoilt 's/parallelism: 4/completions: 4/' "'completions' is given twice"
    spoilt 's/completions: 4/completions: 5/' '--nodes has to be completions'
    spoilt 's/clusterIP: None/clusterIP: 10.0.0.1/' 'there is no headless Service for it'
    spoilt 's/publishNotReadyAddresses: true/publishNotReadyAddresses: false/' 'there is no headless Service for it'
    spoilt 's/subdomain: hello/subdomain: other/' 'subdomain has to be'
    spoilt 's/defaultMode: 0440/defaultMode: 0444/' 'others could read the secret'
    spoilt 's/completionMode: Indexed/completionMode: NonIndexed/' 'completionMode has to be Indexed'
    spoilt 's/\[69, 143\]/[69]/' 'of one whose pod 0 was evicted with 143' openmpi
    spoilt 's/\[0, 69, 143\]/[0, 69]/' '69 and 143 are to begin anew' openmpi
    spoilt 's/\[69, 143\]/[143, 69]/' 'exit codes in order' openmpi
    spoilt 's/containerName: main/containerName: other/' 'a container that is not there' openmpi
    all_refused
}

@test "what the first manifest runs" {
    local words i
    clean_start
    pod_secret "$HOSTS_DIR/key"
    launcher_known 0 1 2 3
    mapfile -t words < <(python3 -c 'import sys, yaml
for document in yaml.safe_load_all(open(sys.argv[1])):
    if document["kind"] == "Job":
        print(*document["spec"]["template"]["spec"]["containers"][0]["command"][1:], sep="\n")' \
        "$folder/docs/k8s/hello.yaml")
    words=("${words[@]/#--secret-file=*/--secret-file=$HOSTS_DIR/key}")
    for i in 0 1 2 3; do start_pod "$i" "${words[@]}"; done
    wait_pod 0
    expect_status 0
    [ "$(sort <<<"$output")" = "$(for i in 0 1 2 3 4 5 6 7; do echo "$i: rank $i of 8 on sim-$((i / 2))"; done)" ] ||
        show_run "not what the page says"
    ended_with 0 1 2 3
    leftovers
    rm -f "$HOSTS_DIR"/key "$HOSTS_DIR"/pod*.hosts
}
