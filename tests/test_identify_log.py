"""Logs: every reader reads what a third party wrote; what is wrong with a log is found and said."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn.errors import FileError, InputError
from armdyn.identification.log import Log, guess

N, RATE = 200, 100.0


@pytest.fixture
def signals():
    t = np.arange(N) / RATE
    q = np.stack([np.sin(t), 0.5 * np.cos(2 * t)], axis=1)
    qd = np.stack([np.cos(t), -np.sin(2 * t)], axis=1)
    tau = np.stack([3 * t, np.exp(-t)], axis=1)
    return t, q, qd, tau


def assert_same(log, signals, atol=1e-9):
    t, q, qd, tau = signals
    assert len(log) == len(t)
    assert log.n == 2
    assert log.rate == pytest.approx(RATE)
    for name, values in (("q", q), ("qd", qd), ("tau", tau)):
        np.testing.assert_allclose(log.array(name), values, atol=atol)


HEADS = {
    "numbers": ["t", "q1", "q2", "qd1", "qd2", "tau1", "tau2"],
    "brackets": ["time", "q[0]", "q[1]", "qd[0]", "qd[1]", "tau[0]", "tau[1]"],
    "words": ["timestamp", "pos_1", "pos_2", "vel_1", "vel_2", "torque_1", "torque_2"],
    "names": [
        "__time",
        "/joint_states/elbow/position",
        "/joint_states/wrist_2/position",
        "/joint_states/elbow/velocity",
        "/joint_states/wrist_2/velocity",
        "/joint_states/elbow/effort",
        "/joint_states/wrist_2/effort",
    ],
    "before": [
        "t",
        "position_elbow",
        "position_wrist",
        "velocity_elbow",
        "velocity_wrist",
        "effort_elbow",
        "effort_wrist",
    ],
}


@pytest.mark.parametrize("kind", HEADS)
def test_csv_with_guessed_columns(tmp_path, signals, kind):
    t, q, qd, tau = signals
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([t, q, qd, tau]), delimiter=",", header=",".join(HEADS[kind]), comments="")
    assert_same(Log.read(path), signals)


def test_columns_may_come_in_any_order_and_unit_of_time(tmp_path, signals):
    t, q, qd, tau = signals
    path = tmp_path / "log.csv"
    table = np.column_stack([tau[:, ::-1], 1e3 * t, q[:, ::-1], qd[:, ::-1]])
    np.savetxt(path, table, delimiter=";", header="tau2;tau1;time_ms;q2;q1;qd2;qd1", comments="")
    assert_same(Log.read(path), signals)


def test_mapped_columns(tmp_path, signals):
    t, q, qd, tau = signals
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([t, q, qd, tau]), delimiter=",", header="a,b,c,d,e,f,g", comments="")
    assert_same(Log.read(path, columns={"t": "a", "q": ["b", "c"], "qd": ["d", "e"], "tau": ["f", "g"]}), signals)
    with pytest.raises(InputError, match="no joint positions"):
        Log.read(path)
    with pytest.raises(InputError, match=r"\['x'\] of 'q' are not in the log"):
        Log.read(path, columns={"q": ["x"]})


def test_joints_of_the_arm_give_the_order():
    names = ["t", "wrist/position", "elbow/position", "wrist/effort", "elbow/effort"]
    assert guess(names, ["elbow", "wrist"]).signals["tau"] == ("elbow/effort", "wrist/effort")


@pytest.mark.parametrize("space", [" ", "\t", "  ", ","])
def test_text_without_a_header(tmp_path, signals, space):
    t, q, qd, tau = signals
    path = tmp_path / "log.txt"
    np.savetxt(path, np.column_stack([t, q, qd, 0 * t, tau]), delimiter=space)
    assert_same(Log.read(path, columns="t,q1:q2,qd1:qd2,-,tau1:tau2"), signals)
    assert_same(Log.read(path, columns=["t", "q1", "q2", "qd1", "qd2", "", "tau1", "tau2"]), signals)
    with pytest.raises(FileError, match="names 2 columns, the rows have 8"):
        Log.read(path, columns="q1,tau1")


def test_a_last_row_that_was_cut_off(tmp_path, signals):
    t, q, qd, tau = signals
    path = tmp_path / "log.csv"
    head = "times,Position 1,Position 2,Velocity 1,Velocity 2,Force 1,Force 2"
    np.savetxt(path, np.column_stack([t, q, qd, tau]), delimiter=",", header=head, comments="# ")
    path.write_text(path.read_text() + "2.0,0.1,0.")
    log = Log.read(path)
    assert_same(log, signals)
    assert "cut off" in log.notes[0]


def test_mat(tmp_path, signals):
    from scipy.io import savemat

    t, q, qd, tau = signals
    savemat(tmp_path / "log.mat", {"t": t, "q": q.T, "qd": qd, "tau": tau, "comment": "text"})
    assert_same(Log.read(tmp_path / "log.mat"), signals)
    savemat(tmp_path / "struct.mat", {"data": {"time": t, "q": q, "qd": qd, "torque": tau}})
    assert_same(Log.read(tmp_path / "struct.mat"), signals)
    (tmp_path / "bad.mat").write_bytes(b"nothing")
    with pytest.raises(FileError, match="not a readable MAT file"):
        Log.read(tmp_path / "bad.mat")


def test_files_too_large_are_refused(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "log.npz", "w", zipfile.ZIP_DEFLATED) as stored, stored.open("q.npy", "w") as q:
        for _ in range(1025):
            q.write(bytes(2**20))
    assert (tmp_path / "log.npz").stat().st_size < 2**21
    with pytest.raises(FileError, match=r"1\.0 GiB of numbers"):
        Log.read(tmp_path / "log.npz")


def test_a_log_shows_itself(signals):
    log = Log.of(signals[0], signals[1], signals[3], signals[2])
    assert repr(log) == "<Log of arrays: 2 joints, 200 samples at 100 Hz, 2 s, q qd tau>"


def test_npz(tmp_path, signals):
    t, q, qd, tau = signals
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, tau=tau)
    assert_same(Log.read(tmp_path / "log.npz"), signals)


def test_parquet(tmp_path, signals):
    pa = pytest.importorskip("pyarrow", reason="the extra `data` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    t, q, qd, tau = signals
    columns = dict(zip(HEADS["brackets"], np.column_stack([t, q, qd, tau]).T, strict=True))
    parquet.write_table(pa.table({**columns, "comment": ["x"] * N}), tmp_path / "log.parquet")
    assert_same(Log.read(tmp_path / "log.parquet"), signals)


@pytest.mark.parametrize("storage", ["SQLITE3", "MCAP"])
def test_rosbag2(tmp_path, signals, storage):
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="the extra `ros` is not installed")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kind = "sensor_msgs/msg/JointState"
    Time, Header, State = (store.types[k] for k in ("builtin_interfaces/msg/Time", "std_msgs/msg/Header", kind))
    t, q, qd, tau = signals
    with rosbag2.Writer(tmp_path / "bag", version=9, storage_plugin=rosbag2.StoragePlugin[storage]) as writer:
        topic = writer.add_connection("/joint_states", kind, typestore=store)
        for k in range(N):
            nano = 1_700_000_000_000_000_000 + round(1e9 * t[k])
            order = [0, 1] if k % 2 == 0 else [1, 0]  # drivers shuffle the joints
            message = State(
                Header(Time(nano // 10**9, nano % 10**9), ""),
                [("elbow", "wrist")[j] for j in order],
                *(values[k, order] for values in (q, qd, tau)),
            )
            writer.write(topic, nano, store.serialize_cdr(message, kind))
    log = Log.read(tmp_path / "bag")
    assert log.joints == ("elbow", "wrist")
    assert_same(log, signals)
    if storage == "MCAP":
        assert_same(Log.read(next((tmp_path / "bag").glob("*.mcap"))), signals)
    with pytest.raises(FileError, match=r"available: /joint_states"):
        Log.read(tmp_path / "bag", topic="/other")


def test_two_files_without_stamps(tmp_path, signals):
    t, q, _, tau = signals
    np.savetxt(tmp_path / "pos.csv", q, delimiter=",", header="Joint_1,Joint_2", comments="")
    np.savetxt(tmp_path / "cur.csv", tau, delimiter=",", header="Joint_1,Joint_2", comments="")
    log = Log.read(tmp_path / "pos.csv", effort=tmp_path / "cur.csv", rate=RATE)
    np.testing.assert_allclose(log.array("q"), q)
    np.testing.assert_allclose(log.array("tau"), tau)
    np.testing.assert_allclose(log.array("t"), t)


def test_currents_are_known_as_currents(tmp_path, signals):
    t, q, _, tau = signals
    np.savetxt(
        tmp_path / "a.csv",
        np.column_stack([t, q, tau]),
        delimiter=",",
        header="t,q1,q2,current_1,current_2",
        comments="",
    )
    assert Log.read(tmp_path / "a.csv").drive == "current"


def test_saved_logs_read_back(tmp_path, signals):
    t, q, qd, tau = signals
    Log.of(t, q, tau, qd).save(tmp_path / "log.csv")
    assert_same(Log.read(tmp_path / "log.csv"), signals)


class TestBadLogs:
    def test_gap(self, signals):
        t, q, qd, tau = signals
        log = Log.of(np.where(t > 1, t + 3, t), q, tau, qd)
        assert len(log.pieces) == 2
        assert "1 gap, the longest 3.01 s" in log.notes[0]

    def test_missing_values(self, signals):
        t, q, qd, tau = signals
        tau[50:60] = np.nan
        log = Log.of(t, q, tau, qd)
        assert "10 of 200 rows have missing or infinite values (first: row 51)" in log.notes[0]
        assert len(log.pieces) == 2

    def test_duplicated_stamps(self, signals):
        repeated = np.sort(np.r_[np.arange(N), [20, 40]])
        log = Log.of(*(signals[k][repeated] for k in (0, 1, 3, 2)))
        assert "2 rows with the time stamp" in log.notes[0]
        assert_same(log, signals)

    def test_uneven_sampling(self, signals):
        t, _, _, tau = signals
        rng = np.random.default_rng(0)
        when = t + rng.uniform(-0.3, 0.3, N) / RATE
        log = Log.of(when, np.stack([np.sin(when), np.cos(when)], 1), tau)
        assert "uneven" in log.notes[0]
        even = log.array("t")
        np.testing.assert_allclose(np.diff(even), log.period)
        np.testing.assert_allclose(log.array("q")[:, 0], np.sin(even), atol=1e-4)

    @pytest.mark.parametrize("jitter", [0.3, 4.0])
    def test_stamps_that_jitter_while_the_sampling_does_not(self, signals, jitter):
        """Stamps off by up to four periods: the rows were taken evenly, as the positions tell."""
        n, rate = 4000, 1000.0
        t = np.arange(n) / rate
        stamps = np.sort(t + np.random.default_rng(0).uniform(-jitter, jitter, n) / rate)
        q = np.stack([np.sin(t), np.cos(2 * t)], 1)
        log = Log.of(stamps, q, q)
        assert "steady clock" in log.notes[0]
        assert log.rate == pytest.approx(rate, rel=2e-3)
        np.testing.assert_allclose(log.array("q"), q, atol=1e-9)

    def test_short_gaps_are_bridged(self):
        t = np.arange(4000) / 1000.0
        keep = np.delete(np.arange(4000), np.r_[500:509, 2000:2007])
        q = np.stack([np.sin(t), np.cos(2 * t)], 1)
        log = Log.of(t[keep], q[keep], q[keep])
        assert len(log.pieces) == 1
        assert "2 short gaps bridged" in log.notes[0]
        np.testing.assert_allclose(log.array("q"), q, atol=1e-6)

    @pytest.mark.parametrize(("factor", "unit"), [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")])
    def test_other_units_of_time(self, signals, factor, unit):
        t, q, qd, tau = signals
        log = Log.of(factor * t, q, tau, qd)
        assert unit in log.notes[0]
        assert_same(log, signals)

    def test_stamps_with_too_few_digits(self, signals):
        t, q, qd, tau = signals
        coarse = np.round(1.46e9 + t, -1)
        log = Log.of(coarse, q, tau, qd)
        assert log.rate == pytest.approx(RATE, rel=1e-3)
        assert "period is 10 ms" in log.notes[0]
        with pytest.raises(InputError, match="give the sampling rate"):
            Log.of(coarse, q, tau)
        assert Log.of(coarse, q, tau, rate=50).rate == pytest.approx(50)

    @pytest.mark.parametrize("slow", [1, 10])
    def test_reversed_rows_and_a_clock_that_counts_down(self, signals, slow):
        """Steps below and above the jitter that a clock may have; measured speeds tell the two apart."""
        t, q, qd, tau = signals
        t, qd = slow * t, qd / slow
        expected = Log.of(t, q, tau, qd)
        back = Log.of(t[::-1], q[::-1], tau[::-1], qd[::-1])
        down = Log.of(-t, q, tau, qd)
        blind = Log.of(t[::-1], q[::-1], tau[::-1])
        words = ("as the measured speeds confirm", "time was negated", "no measured speeds")
        for log, said in zip((back, down, blind), words, strict=True):
            assert any("time runs backwards" in note and said in note for note in log.notes), log.notes
            assert log.rate == pytest.approx(expected.rate)
            np.testing.assert_allclose(log.array("q"), expected.array("q"), atol=1e-9)
            np.testing.assert_allclose(log.array("tau"), expected.array("tau"), atol=1e-9)
        assert not any("backwards" in note for note in expected.notes)

    def test_time_running_backwards(self, signals):
        t, q, _, tau = signals
        again = Log.of(np.concatenate([t, t]), *(np.concatenate([x, x]) for x in (q, tau)))
        assert len(again.pieces) == 2
        assert f"the clock restarts at row {len(t) + 1}" in again.notes[0]
        late = np.argsort(np.arange(len(t)) + np.where(np.arange(len(t)) % 40 == 7, 9.5, 0))  # some rows come too late
        mended = Log.of(t[late], q[late], tau[late])
        assert "sorted by time stamp" in mended.notes[0]
        np.testing.assert_array_equal(mended.array("q"), q)
        with pytest.raises(InputError, match=r"backwards at \d+ rows \(first: row"):
            Log.of(np.abs((t / 0.1) % 2 - 1), q, tau)

    @pytest.mark.parametrize(("position", "velocity"), [(True, False), (False, True), (True, True)])
    def test_degrees(self, tmp_path, signals, position, velocity):
        t, q, qd, tau = signals
        log = Log.of(t, np.rad2deg(q) if position else q, tau, np.rad2deg(qd) if velocity else qd)
        assert "degrees" in " ".join(log.doubts)
        log.save(tmp_path / "log.csv")
        if position and velocity:
            assert_same(Log.read(tmp_path / "log.csv", degrees=True), signals)

    def test_nothing_to_doubt(self, signals):
        log = Log.of(signals[0], signals[1], signals[3], signals[2])
        assert log.notes == log.doubts == ()

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "empty|name the columns|same name"),
            ("q1,tau1\n", "empty"),
            ("q1,tau1\na,b\n", "not a table of numbers"),
            ("1,2\n3,4\n", "first line must name.*--columns"),
            ("q1,q1\n1,2\n", "same name"),
            ("q1,tau1\n1,2,3\n", "names 2 columns, the rows have 3"),
        ],
    )
    def test_broken_csv(self, tmp_path, text, said):
        (tmp_path / "log.csv").write_text(text)
        with pytest.raises(FileError, match=said):
            Log.read(tmp_path / "log.csv")

    def test_other_files(self, tmp_path):
        with pytest.raises(FileError, match="no such log"):
            Log.read(tmp_path / "none.csv")
        (tmp_path / "log.xyz").write_text("1")
        with pytest.raises(FileError, match=r"available: \.csv"):
            Log.read(tmp_path / "log.xyz")

    def test_shapes(self, signals):
        t, q, _, tau = signals
        with pytest.raises(InputError, match="tau has shape"):
            Log.of(t, q, tau[:-1])
        with pytest.raises(InputError, match="no time column"):
            Log.of(None, q, tau)
        with pytest.raises(InputError, match="usable rows"):
            Log.of(t[:5], q[:5], tau[:5])


def test_parts(signals):
    log = Log.of(signals[0], signals[1], signals[3], signals[2])
    assert len(log.part(0, 0.7)) + len(log.part(0.7, 1)) == N
    with pytest.raises(InputError, match="fractions"):
        log.part(0.5, 0.2)


def test_public_name():
    assert armdyn.Log is Log


def moving_log(arm, commands=False, seconds=6.0):
    t = np.arange(0, seconds, 1 / RATE)
    q = np.stack([0.8 * np.sin((k + 1.3) * t + k) for k in range(arm.n)], axis=1)
    qd, qdd = np.gradient(q, 1 / RATE, axis=0), np.gradient(np.gradient(q, 1 / RATE, axis=0), 1 / RATE, axis=0)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd)) + 0.5 * qd
    return Log.of(t, q, tau, command=q if commands else None)


def test_names_and_paths_do_as_well_as_arms_and_logs(tmp_path):
    arm = armdyn.load("planar3")
    log = moving_log(arm)
    log.save(tmp_path / "log.csv")
    arm.save(tmp_path / "arm.toml")
    path = tmp_path / "log.csv"
    expected = armdyn.identify(arm, Log.read(path), friction="viscous")
    for given in ("planar3", tmp_path / "arm.toml", arm):
        found = armdyn.identify(given, str(path), friction="viscous", validate=path, prior=given)
        np.testing.assert_array_equal(found.values, expected.values)
    assert found.validation.error == expected.validate(str(path)).error
    assert armdyn.identify(arm, [path, log], friction="viscous").training.source == "log.csv"
    payload = armdyn.identify_payload("planar3", path)
    assert payload.mass == armdyn.identify_payload(arm, Log.read(path)).mass
    gains = armdyn.identify_gains("planar3", path)
    np.testing.assert_array_equal(gains.values, armdyn.identify_gains(arm, Log.read(path)).values)


def test_what_is_no_arm_or_no_log_is_said():
    with pytest.raises(
        InputError, match="identify takes an Arm, a catalogue name or the path of a robot's file, got 3"
    ):
        armdyn.identify(3, "log.csv")
    with pytest.raises(InputError, match=r"expected a Log or the path of a log, got int: Log.of\(t, q, tau\)"):
        armdyn.identify("planar3", 3)
    with pytest.raises(FileError, match=r"no.csv: no such log"):
        armdyn.identify("planar3", "no.csv")
    with pytest.raises(InputError, match="no log to identify from"):
        armdyn.identify("planar3", [])


def test_commands_are_kept_and_a_log_may_be_without_torques(tmp_path):
    arm = armdyn.load("planar3")
    whole = moving_log(arm, commands=True)
    whole.save(tmp_path / "log.csv")
    again = Log.read(tmp_path / "log.csv")
    np.testing.assert_allclose(again.array("command"), whole.array("command"), atol=1e-9)
    t, q = whole.array("t"), whole.array("q")
    servo = Log.of(t, q, command=q)
    assert servo.drive == ""
    assert "q command" in repr(servo)
    servo.save(tmp_path / "servo.csv")
    assert Log.read(tmp_path / "servo.csv").drive == ""
    np.testing.assert_allclose(servo.part(0, 0.5).array("command"), q[: len(q) // 2])
    with pytest.raises(InputError, match="the log has no tau"):
        servo.array("tau")
    with pytest.raises(InputError, match="no torques or currents"):
        armdyn.identify(arm, servo)
    with pytest.raises(InputError, match="give the torques"):
        Log.of(t, q)


def test_a_command_holds_until_the_next_when_a_log_is_resampled():
    rng = np.random.default_rng(0)
    t = np.arange(N) / RATE + rng.uniform(-0.004, 0.004, N)
    q = np.sin(t)[:, None]
    log = Log.of(t, q, command=np.floor(5 * t)[:, None])
    assert set(np.unique(log.array("command"))) <= set(range(11))


WITH_UNITS = {
    "words": ["Time [s]", "Joint 1 Position (rad)", "Joint 2 Position (rad)", "Torque 1 [Nm]", "Torque 2 [Nm]"],
    "degrees": ["time", "q1 [deg]", "q2 [deg]", "tau1 (N m)", "tau2 (N m)"],
}


@pytest.mark.parametrize("head", WITH_UNITS)
def test_units_in_the_names_of_columns(tmp_path, head):
    t = np.arange(100) / 100
    q, tau = np.stack([np.sin(t), np.cos(t)], axis=1), np.stack([t, -t], axis=1)
    rows = np.column_stack([t, np.degrees(q) if head == "degrees" else q, tau])
    names = WITH_UNITS[head]
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=",".join(names), comments="")
    log = Log.read(tmp_path / "log.csv")
    np.testing.assert_allclose(log.array("q"), q, atol=1e-12)
    np.testing.assert_allclose(log.array("tau"), tau, atol=1e-12)
    assert any("by the names of their columns, q are in degrees" in note for note in log.notes) == (head == "degrees")


def test_decimal_commas(tmp_path):
    t = np.arange(50) / 100
    rows = [f"{x:.3f};{np.sin(x):.6f};{x:.3f}".replace(".", ",") for x in t]
    (tmp_path / "log.csv").write_text("\n".join(["t;q1;tau1", *rows]) + "\n")
    log = Log.read(tmp_path / "log.csv")
    np.testing.assert_allclose(log.array("q")[:, 0], np.sin(t), atol=1e-6)
    assert "numbers have decimal commas" in log.notes


def test_a_signal_of_some_joints_only(tmp_path):
    t = np.arange(50) / 100
    names = ["t", "q1", "q2", "tau1", "tau2", "qd1"]
    rows = np.column_stack([t, np.sin(t), np.cos(t), t, -t, np.cos(t)])
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=",".join(names), comments="")
    log = Log.read(tmp_path / "log.csv")
    assert log.pieces[0].qd is None
    assert "the columns of qd are qd1: none is of joint 2, and qd is not used" in log.notes
    np.savetxt(tmp_path / "less.csv", rows[:, :4], delimiter=",", header=",".join(names[:4]), comments="")
    with pytest.raises(InputError, match="the columns of tau are tau1: none is of joint 2"):
        Log.read(tmp_path / "less.csv")
