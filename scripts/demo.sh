#!/bin/sh
# Reports on the example campaigns into reports/demo/<campaign>/. Ends with the exit code of the worst one.
set -u
worst=0
report() {
    rdmalab report "$1" -p "campaign=$2" --out "reports/demo/$2"
    code=$?
    [ $code -gt $worst ] && worst=$code
}
rdmalab ingest data/examples/synthetic data/examples/synthetic-pairs data/examples/softroce || exit $?
for campaign in synthetic softroce; do
    report fabric-comparison $campaign
done
report pairs synthetic-pairs
rdmalab report claims-audit -p claims=data/examples/synthetic/claims.toml --out reports/demo/claims
code=$?
[ $code -gt $worst ] && worst=$code
exit $worst
