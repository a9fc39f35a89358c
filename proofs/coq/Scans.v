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

(** All outputs, and the state after each of them. *)
Fixpoint run_with_history (h : State) (xs : list Input) : list Output * list State :=
  match xs with
  | [] => ([], [])
  | x :: rest =>
      let (h1, y) := step h x in
      let (ys, states) := run_with_history h1 rest in
      (y :: ys, h1 :: states)
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

(** The variant that records states computes the same outputs, and its last state is the final one. *)
Theorem history_agrees : forall xs h,
  fst (run_with_history h xs) = outputs h xs /\ last (snd (run_with_history h xs)) h = final h xs.
Proof.
  unfold outputs, final; induction xs as [| x xs IH]; intros h; [split; reflexivity |].
  simpl. destruct (step h x) as [h1 y]. destruct (IH h1) as [same ends].
  destruct (run_with_history h1 xs) as [ys states], (run h1 xs) as [zs end_]; simpl in *.
  split; [rewrite same; reflexivity |]. rewrite <- ends.
  destruct states as [| s states]; [reflexivity |].
  clear. revert s. induction states as [| t states IH]; intros s; [reflexivity |]. exact (IH t).
Qed.

Lemma history_count : forall xs h, length (snd (run_with_history h xs)) = length xs.
Proof.
  induction xs as [| x xs IH]; intros h; simpl; [reflexivity |].
  destruct (step h x) as [h1 y]. specialize (IH h1).
  destruct (run_with_history h1 xs) as [ys states]. simpl in *. rewrite IH. reflexivity.
Qed.

(** The state recorded at step t is the final state of the first t + 1 inputs. *)
Theorem history_is_prefix_state : forall xs h t d,
  t < length xs -> nth t (snd (run_with_history h xs)) d = final h (firstn (S t) xs).
Proof.
  unfold final; induction xs as [| x xs IH]; intros h t d inside; [inversion inside |].
  simpl. destruct (step h x) as [h1 y].
  destruct t as [| t]; simpl in *.
  - destruct (run_with_history h1 xs); reflexivity.
  - apply Nat.succ_lt_mono in inside. specialize (IH h1 t d inside).
    destruct (run_with_history h1 xs) as [ys states]. simpl in IH |- *. rewrite IH.
    destruct (run h1 (firstn (S t) xs)) as [zs h2] eqn:rest. simpl in rest. rewrite rest. reflexivity.
Qed.

End Runs.
