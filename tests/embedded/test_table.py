from __future__ import annotations

from rsched.embedded.table import UpOptions, process_table


def ports(options: UpOptions) -> dict[str, str]:
    return {
        e.name: e.argv[e.argv.index("--metrics-port") + 1] for e in process_table(options) if "--metrics-port" in e.argv
    }


def test_each_child_serves_its_metrics_on_a_port_of_its_own_and_the_api_on_its() -> None:
    options = UpOptions(workers=2, demo=True, metrics_port=9400)
    assert ports(options) == {
        "scheduler": "9400", "recorder": "9401", "worker-1": "9402", "worker-2": "9403", "worker-demo": "9404"
    }  # fmt: skip


def test_no_child_serves_metrics_unless_told() -> None:
    assert ports(UpOptions(workers=2)) == {}
