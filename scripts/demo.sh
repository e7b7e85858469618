#!/bin/sh
# Reports on the example campaigns into reports/demo/<campaign>/. Ends with the exit code of the worst one.
set -u
worst=0
rdmalab ingest data/examples/synthetic data/examples/softroce || exit $?
for campaign in synthetic softroce; do
    rdmalab report fabric-comparison -p campaign=$campaign --out "reports/demo/$campaign"
    code=$?
    [ $code -gt $worst ] && worst=$code
done
exit $worst
