--------------------------------- MODULE Paths ---------------------------------
(* Shortest paths through Forwarding.tla, for replays on simulated nodes (spec/   *)
(* paths.toml, chaos/simulated/replay.py). It is the same specification, without   *)
(* the behaviours that the simulation cannot arrange message by message.           *)
EXTENDS Forwarding

CONSTANTS Candidates,  \* only these nodes become controllers; requests come from other nodes
          Path         \* <<>> to search; or a path that TLC must follow
VARIABLE steps         \* what was done so far; not part of the state (VIEW)

Step(step, action) ==
  /\ Path = <<>> \/ (Len(steps) < Len(Path) /\ step = Path[Len(steps) + 1])
  /\ action
  /\ steps' = Append(steps, step)

\* One channel carries all Envelopes of a broker, in order: it breaks for all of them, and a floor
\* does not overtake them. An Envelope reaches the controller that it was sent to. A controller
\* reads brokers between two rounds of its loop, and sends all decided writes at once.
Others(r) == {q \in Requests : q # r /\ Request[q].node = Request[r].node}
IsAlone(r) == \A q \in Others(r) : waits[q] = Idle
IsQuiet == \A r \in Requests : waits[r] # OnItsWay
IsSilent(b) == \A r \in Requests : Request[r].node = b => waits[r] # OnItsWay
\* The controller's own broker applies an update at once. On a channel, the update with a change is
\* before the response to its request.
KnowsItself(n) == Blocks => (IsActive(n) /\ brokers[n].applied >= ctl[n].counter)
IsAfterUpdate(r) == \A i \in DOMAIN log :
                      log[i].req = r => brokers[Request[r].node].applied >= log[i].num

PathNext ==
  \/ \E n \in Candidates :
       \/ Step(<<"ClaimSent", n>>, ClaimSent(n))
       \/ Step(<<"BecameActive", n>>, BecameActive(n))
       \/ Step(<<"Resigned", n>>, Resigned(n))
       \/ IsActive(n) /\ ctl[n].flight = <<>> /\ Step(<<"BrokersRead", n>>, BrokersRead(n))
       \/ Step(<<"CommitUnknown", n>>, CommitUnknown(n))
       \/ Step(<<"CommitAcknowledged", n>>, CommitAcknowledged(n))
       \/ Step(<<"CommitConflicted", n>>, CommitConflicted(n))
       \/ Step(<<"OutcomesPruned", n>>, OutcomesPruned(n))
       \/ IsActive(n) /\ Step(<<"CommitSent", n>>, CommitSent(n, Len(ctl[n].todo)))
       \/ \E kept \in 0..1 : Step(<<"ConnectionLost", n, kept>>, ConnectionLost(n, kept))
       \/ \E b \in Nodes :
            \/ IsSilent(b) /\ Step(<<"FloorReported", n, b>>, FloorReported(n, b))
            \/ Step(<<"ImageAdvanced", n, b>>, ImageAdvanced(n, b))
       \/ \E r \in Requests :
            \/ Step(<<"EnvelopeReceived", n, r>>, EnvelopeReceived(n, r, FALSE))
            \/ Step(<<"LateReceived", n, r>>, EnvelopeReceived(n, r, TRUE))
            \/ Step(<<"ExecutionStarted", n, r>>, Execution(n, r))
            \/ Step(<<"DecidedTooLate", n, r>>, DecidedTooLate(n, r))
            \/ KnowsItself(n) /\ Step(<<"RequestDecided", n, r>>, RequestDecided(n, r))
  \/ \E b \in Nodes \ Candidates :
       \/ Step(<<"NodeRestarted", b>>, NodeRestarted(b))
       \/ Step(<<"Unregistered", b>>, Unregistered(b))
       \/ Step(<<"Registered", b>>, Registered(b))
  \/ \E e \in Epochs :
       \/ Step(<<"Applied", e>>, Applied(e))
       \/ IsQuiet /\ Step(<<"SessionEnded", e>>, SessionEnded(e))
  \/ \E r \in Requests :
       \/ Step(<<"ForwardSent", r>>, ForwardSent(r))
       \/ IsAlone(r) /\ Step(<<"ChannelBroken", r>>, ChannelBroken(r))
       \/ IsAlone(r) /\ Step(<<"EnvelopeDelayed", r>>, EnvelopeDelayed(r))
       \/ (Blocks => IsAfterUpdate(r)) /\ Step(<<"Responded", r>>, Responded(r))
  \/ \E t \in Topics : Step(<<"DirectWrite", t>>, DirectWrite(t))
  \/ IsQuiet /\ Step(<<"ControllerZnodeDeleted">>, ControllerZnodeDeleted)

PathSpec == Init /\ steps = <<>> /\ [][PathNext]_<<vars, steps>>

-------------------------------------------------------------------------------
\* Kinds of states. TLC looks for a violation of "never", which is the shortest path to one.

HasResult(r, how) == result[r].how = how
Answered(r, error) == HasResult(r, "answered") /\ \E t \in Elements(r) : result[r].errors[t] = error

NeverCounted == ~FirstCopyWasApplied
NeverFenced == ~ZombieWasFenced
NeverFound == ~OutcomeWasFound
NeverFoundLater == \A n \in Nodes : (IsActive(n) /\ ctl[n].epoch = EpochMax) =>
                     \A r \in ctl[n].inbox : \A o \in ctl[n].outcomes : o[1] # Id(r)
NeverExists == \A r \in Requests : ~Answered(r, "exists")
NeverOk == \A r \in Requests : ~Answered(r, "ok")
NeverUnknown == \A r \in Requests : ~Answered(r, "unknown")
NeverTooLate == \A n \in Nodes, r \in Requests :
                  ~(IsActive(n) /\ r \in ctl[n].inbox /\ IsTooLate(n, r))
NeverConflict == \A e \in Epochs : "conflict" \notin Range(acks[e])
NeverPruned == \A l \in Lives : zk.floors[l] = 0
NeverSecondLife == \A r \in Requests : ~(Request[r].life = 2 /\ Answered(r, "ok"))
NeverReElected == ~(\E n \in Nodes : ctl[n].epoch = EpochMax /\ IsActive(n)
                                     /\ \E r \in Requests : Answered(r, "ok"))

\* What a replay compares with the nodes and with ZooKeeper.
IsFollowed ==
  (Path # <<>> /\ Len(steps) = Len(Path)) =>
    /\ PrintT(<<"results", result>>)
    /\ PrintT(<<"effects", [i \in DOMAIN log |-> <<log[i].req, log[i].topic>>]>>)
    /\ PrintT(<<"exists", zk.exists>>)
    /\ PrintT(<<"epoch", zk.epoch>>)
    /\ PrintT(<<"active", {n \in Nodes : IsActive(n)}>>)
    /\ PrintT(<<"outcomes", zk.outcomes>>)
    /\ PrintT(<<"informed", {b \in Nodes : Blocks /\ brokers[b].applied >= zk.counter}>>)
    /\ PrintT(<<"replies", [e \in Epochs |-> acks[e]]>>)
===============================================================================
