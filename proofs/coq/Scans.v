(** Running a step function over a sequence: the model behind every recurrent and state-space op.

    [step h x] gives the next state and one output. Nothing is assumed of it, so each theorem holds
    for every step, in every arithmetic, floating point included. *)

From Coq Require Import List PeanoNat.
Import ListNotations.

Section Runs.

Variables State Input Output : Type.
Variable step : State -> Input -> State * Output.

(** All outputs and the final state. *)
Fixpoint run (h : State) (xs : list Input) : list Output * State :=
  match xs with
  | [] => ([], h)
  | x :: rest =>
      let (h1, y) := step h x in
      let (ys, last) := run h1 rest in
      (y :: ys, last)
  end.

Definition outputs (h : State) (xs : list Input) : list Output := fst (run h xs).
Definition final (h : State) (xs : list Input) : State := snd (run h xs).

(** All outputs, and all states: the one before the first input, then one after each. *)
Fixpoint run_with_history (h : State) (xs : list Input) : list Output * list State :=
  match xs with
  | [] => ([], [h])
  | x :: rest =>
      let (h1, y) := step h x in
      let (ys, states) := run_with_history h1 rest in
      (y :: ys, h :: states)
  end.

(** One run a chunk, each from the state that the one before it left. *)
Fixpoint run_chunked (h : State) (chunks : list (list Input)) : list Output * State :=
  match chunks with
  | [] => ([], h)
  | chunk :: rest =>
      let (ys, h1) := run h chunk in
      let (zs, last) := run_chunked h1 rest in
      (ys ++ zs, last)
  end.

(** A run over [xs ++ ys] is a run over [xs], continued over [ys] from the state it left. *)
Theorem streaming : forall xs ys h,
  run h (xs ++ ys) = (outputs h xs ++ outputs (final h xs) ys, final (final h xs) ys).
Proof.
  induction xs as [| x xs IH]; intros ys h.
  - unfold outputs, final; simpl. destruct (run h ys); reflexivity.
  - unfold outputs, final in *; simpl. destruct (step h x) as [h1 y].
    rewrite IH. destruct (run h1 xs) as [zs h2]. reflexivity.
Qed.

(** One output for each input. *)
Theorem output_count : forall xs h, length (outputs h xs) = length xs.
Proof.
  unfold outputs; induction xs as [| x xs IH]; intros h; simpl.
  - reflexivity.
  - destruct (step h x) as [h1 y]. specialize (IH h1).
    destruct (run h1 xs) as [ys h2]. simpl in *. rewrite IH. reflexivity.
Qed.

(** Inputs that are appended later do not change the outputs that were emitted before. *)
Theorem prefix_causality : forall xs ys h,
  firstn (length xs) (outputs h (xs ++ ys)) = outputs h xs.
Proof.
  intros xs ys h. unfold outputs at 1. rewrite streaming; simpl.
  rewrite <- (output_count xs h), firstn_app, Nat.sub_diag, firstn_all, app_nil_r. reflexivity.
Qed.

(** Two sequences that agree on the first k inputs agree on the first k outputs. *)
Theorem future_independence : forall k xs ys h,
  firstn k xs = firstn k ys -> firstn k (outputs h xs) = firstn k (outputs h ys).
Proof.
  unfold outputs; induction k as [| k IH]; intros xs ys h same; [reflexivity |].
  destruct xs as [| x xs], ys as [| y ys]; simpl in same; try discriminate; [reflexivity |].
  injection same as -> same. simpl. destruct (step h y) as [h1 z]. specialize (IH xs ys h1 same).
  destruct (run h1 xs), (run h1 ys); simpl in *. rewrite IH. reflexivity.
Qed.

(** Any split into chunks, empty ones included, gives the outputs and the state of one run. *)
Theorem chunked_equals_sequential : forall chunks h, run_chunked h chunks = run h (concat chunks).
Proof.
  induction chunks as [| chunk rest IH]; intros h; simpl; [reflexivity |].
  rewrite streaming. unfold outputs, final. destruct (run h chunk) as [ys h1]; simpl.
  rewrite IH. destruct (run h1 (concat rest)). reflexivity.
Qed.

(** The variant that records states computes the same outputs, and at t stands the final state of
    the first t inputs. *)
Theorem history_agrees : forall xs h t,
  fst (run_with_history h xs) = outputs h xs
  /\ (t <= length xs -> nth_error (snd (run_with_history h xs)) t = Some (final h (firstn t xs))).
Proof.
  unfold outputs, final; induction xs as [| x xs IH]; intros h t; simpl.
  - split; [reflexivity |]. intros inside. apply Nat.le_0_r in inside. subst t. reflexivity.
  - destruct (step h x) as [h1 y] eqn:stepped. split.
    + destruct (IH h1 0) as [same _].
      destruct (run_with_history h1 xs), (run h1 xs). simpl in *. rewrite same. reflexivity.
    + intros inside. destruct t as [| t].
      * destruct (run_with_history h1 xs). reflexivity.
      * apply Nat.succ_le_mono in inside. destruct (IH h1 t) as [_ at_t]. specialize (at_t inside).
        destruct (run_with_history h1 xs) as [ys states]. simpl in *. rewrite at_t, stepped.
        destruct (run h1 (firstn t xs)). reflexivity.
Qed.

(** Sequences laid end to end: at the first input of each, the state is [first] again. *)
Definition resetting (first now : State) (p : Input * bool) : State * Output :=
  step (if snd p then first else now) (fst p).

Definition marked (xs : list Input) : list (Input * bool) :=
  match xs with [] => [] | x :: rest => (x, true) :: map (fun y => (y, false)) rest end.

End Runs.

(** Packed sequences give the outputs that each gives alone, whatever the state before them. *)
Theorem packed_equals_single : forall State Input Output (step : State -> Input -> State * Output)
    first now sequences,
  outputs _ _ _ (resetting _ _ _ step first) now (concat (map (marked Input) sequences))
  = concat (map (outputs _ _ _ step first) sequences).
Proof.
  intros State Input Output step first now sequences; revert now.
  assert (inner : forall xs now,
    outputs _ _ _ (resetting _ _ _ step first) now (map (fun y => (y, false)) xs)
    = outputs _ _ _ step now xs).
  { unfold outputs; induction xs as [| x xs IH]; intros now; simpl; [reflexivity |].
    unfold resetting at 1; simpl. destruct (step now x) as [h1 y]. specialize (IH h1).
    destruct (run _ _ _ (resetting _ _ _ step first) h1 (map (fun y => (y, false)) xs)).
    destruct (run _ _ _ step h1 xs). simpl in *. rewrite IH. reflexivity. }
  assert (alone : forall xs now,
    outputs _ _ _ (resetting _ _ _ step first) now (marked Input xs) = outputs _ _ _ step first xs).
  { intros [| x xs] now; [reflexivity |]. simpl marked. unfold outputs in *; simpl.
    unfold resetting at 1; simpl. destruct (step first x) as [h1 y]. specialize (inner xs h1).
    destruct (run _ _ _ (resetting _ _ _ step first) h1 (map (fun y => (y, false)) xs)).
    destruct (run _ _ _ step h1 xs). simpl in *. rewrite inner. reflexivity. }
  induction sequences as [| xs sequences IH]; intros now; simpl; [reflexivity |].
  unfold outputs at 1. rewrite streaming. simpl. rewrite alone, IH. reflexivity.
Qed.

(** ** What a convolution's taps still see belongs to the state *)

Section Windows.

Variables Input Output : Type.
Variable taps : nat.
Variable f : list Input -> Output.

(** Reads the last [taps] inputs, the current one first, from all that came before. *)
Definition whole (past : list Input) (x : Input) : list Input * Output :=
  (x :: past, f (firstn taps (x :: past))).

(** Reads the same, and keeps only what the next step can still see. *)
Definition windowed (past : list Input) (x : Input) : list Input * Output :=
  (firstn (pred taps) (x :: past), f (firstn taps (x :: past))).

(** Keeping taps - 1 inputs is keeping all of them. *)
Theorem window_suffices : forall xs past,
  outputs _ _ _ windowed (firstn (pred taps) past) xs = outputs _ _ _ whole past xs.
Proof.
  assert (seen : forall (x : Input) past,
    firstn taps (x :: firstn (pred taps) past) = firstn taps (x :: past)).
  { intros x past. destruct taps as [| k]; [reflexivity |]. simpl.
    rewrite firstn_firstn, Nat.min_id. reflexivity. }
  assert (kept : forall (x : Input) past, firstn (pred taps) (x :: firstn (pred taps) past)
    = firstn (pred taps) (x :: past)).
  { intros x past. destruct taps as [| [| k]]; try reflexivity. unfold pred.
    rewrite !firstn_cons, firstn_firstn, Nat.min_l by apply Nat.le_succ_diag_r. reflexivity. }
  unfold outputs; induction xs as [| x xs IH]; intros past; [reflexivity |].
  simpl run. rewrite seen, kept. specialize (IH (x :: past)).
  destruct (run _ _ _ windowed (firstn (pred taps) (x :: past)) xs).
  destruct (run _ _ _ whole (x :: past) xs). simpl in *. rewrite IH. reflexivity.
Qed.

End Windows.
