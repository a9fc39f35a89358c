(** Hard-masked softmax of a row of any length.

    The definitions hold for any arithmetic. [reals] has the real exponential; [powers] has
    fractions and 2^x, so that the same definitions can be evaluated and compared with the
    executable spec. *)

From Coq Require Import List Reals Lra QArith Qpower Qminmax.
Import ListNotations.
Local Close Scope Q_scope.

Record arithmetic := Arithmetic {
  number : Type;
  zero : number;
  one : number;
  add : number -> number -> number;
  sub : number -> number -> number;
  mul : number -> number -> number;
  div : number -> number -> number;
  maximum : number -> number -> number;
  exponential : number -> number
}.

Canonical Structure reals : arithmetic :=
  Arithmetic R 0%R 1%R Rplus Rminus Rmult Rdiv Rmax exp.

(** 2^x for an integer x; only such scores are evaluated. *)
Definition power_of_two (x : Q) : Q := Qpower 2 (Qnum (Qred x)).

Canonical Structure powers : arithmetic :=
  Arithmetic Q 0%Q 1%Q (fun x y => Qred (x + y)) (fun x y => Qred (x - y))
    (fun x y => Qred (x * y)) (fun x y => Qred (x / y)) Qmax power_of_two.

Section Definitions.

Variable K : arithmetic.

(** One entry of a row: a score, and whether it is allowed. *)
Definition entry := (number K * bool)%type.

Definition sum (xs : list (number K)) : number K := fold_right (add K) (zero K) xs.

Definition seen (row : list entry) : bool := existsb snd row.

(** The maximum over allowed entries, 0 where there are none. *)
Definition row_max (row : list entry) : number K :=
  match map fst (filter snd row) with
  | [] => zero K
  | s :: rest => fold_left (maximum K) rest s
  end.

Definition exponentials (top : number K) (row : list entry) : list (number K) :=
  map (fun e : entry => if snd e then exponential K (sub K (fst e) top) else zero K) row.

Definition divisor (top : number K) (row : list entry) : number K :=
  if seen row then sum (exponentials top row) else one K.

(** The weights, with any number subtracted from the scores. *)
Definition weights (top : number K) (row : list entry) : list (number K) :=
  map (fun e => div K e (divisor top row)) (exponentials top row).

Definition masked_softmax (row : list entry) : list (number K) := weights (row_max row) row.

(** Rows with one mask that hold the same scores where it allows them. *)
Definition agree : list entry -> list entry -> Prop :=
  Forall2 (fun x y => snd x = snd y /\ (snd x = true -> fst x = fst y)).

Lemma agree_seen : forall x y, agree x y -> seen x = seen y.
Proof.
  unfold seen; induction 1 as [| [s a] [t b] x y [masks _] _ IH]; simpl in *; [reflexivity |].
  rewrite masks, IH. reflexivity.
Qed.

Lemma agree_row_max : forall x y, agree x y -> row_max x = row_max y.
Proof.
  intros x y same. unfold row_max.
  replace (map fst (filter snd y)) with (map fst (filter snd x)); [reflexivity |].
  induction same as [| [s a] [t b] x y [masks scores] _ IH]; simpl in *; [reflexivity |].
  subst b. destruct a; simpl; rewrite IH; [rewrite scores |]; reflexivity.
Qed.

Lemma agree_exponentials : forall top x y, agree x y -> exponentials top x = exponentials top y.
Proof.
  induction 1 as [| [s a] [t b] x y [masks scores] _ IH]; simpl in *; [reflexivity |].
  subst b. destruct a; rewrite IH; [rewrite scores |]; reflexivity.
Qed.

(** What stands at blocked entries has no influence, in any arithmetic, floating point included. *)
Theorem blocked_independent : forall x y, agree x y -> masked_softmax x = masked_softmax y.
Proof.
  intros x y same. unfold masked_softmax, weights, divisor.
  rewrite (agree_row_max _ _ same), (agree_exponentials _ _ _ same), (agree_seen _ _ same).
  reflexivity.
Qed.

End Definitions.

Arguments sum {K} xs.
Arguments seen {K} row.
Arguments row_max {K} row.
Arguments exponentials {K} top row.
Arguments divisor {K} top row.
Arguments weights {K} top row.
Arguments masked_softmax {K} row.
Arguments agree {K} x y.

(** ** Over the real numbers, with the real exponential *)

Local Open Scope R_scope.

Notation real_row := (list (entry reals)).

(** The ring of the reals, where their type is hidden behind the record. *)
Ltac real_ring :=
  simpl; apply Rminus_diag_uniq; ring.

Lemma sum_scaled : forall (c : R) (xs : list R),
  sum (K := reals) (map (fun x => x * c) xs) = sum (K := reals) xs * c.
Proof.
  intros c xs; induction xs as [| x xs IH]; simpl in *; [ring |]. rewrite IH. ring.
Qed.

Lemma exponentials_nonnegative : forall top (row : real_row) e,
  In e (exponentials top row) -> 0 <= e.
Proof.
  intros top row e among. apply in_map_iff in among. destruct among as [[s a] [<- _]].
  destruct a; simpl; [left; apply exp_pos | right; reflexivity].
Qed.

Lemma mass_nonnegative : forall top (row : real_row), 0 <= sum (exponentials top row).
Proof.
  intros top row; induction row as [| [s a] row IH]; simpl in *; [lra |].
  destruct a; [pose proof (exp_pos (s - top)) |]; lra.
Qed.

Lemma mass_positive : forall top (row : real_row),
  seen row = true -> 0 < sum (exponentials top row).
Proof.
  intros top row; induction row as [| [s a] row IH]; simpl in *; [discriminate |].
  destruct a; simpl in *; intros some.
  - pose proof (exp_pos (s - top)). pose proof (mass_nonnegative top row) as rest.
    simpl in rest. lra.
  - specialize (IH some). lra.
Qed.

Lemma nothing_seen : forall top (row : real_row),
  seen row = false -> exponentials top row = map (fun _ => 0) row.
Proof.
  intros top row; induction row as [| [s a] row IH]; simpl; intros none; [reflexivity |].
  apply Bool.orb_false_elim in none. destruct none as [blocked rest]; simpl in blocked.
  rewrite blocked, IH by exact rest. reflexivity.
Qed.

Lemma divisor_positive : forall top (row : real_row), 0 < divisor top row.
Proof.
  intros top row. unfold divisor. destruct (seen row) eqn:some; simpl; [| lra].
  apply mass_positive. exact some.
Qed.

(** The weights sum to 1; those of a row with none allowed sum to 0. *)
Theorem row_sum : forall top (row : real_row),
  sum (weights top row) = if seen row then 1 else 0.
Proof.
  intros top row. unfold weights. rewrite (sum_scaled (/ divisor top row)).
  pose proof (divisor_positive top row) as positive. unfold divisor in *.
  destruct (seen row) eqn:some; simpl in *.
  - field. lra.
  - rewrite (nothing_seen top row some). clear.
    induction row as [| e row IH]; simpl in *; lra.
Qed.

Theorem weights_nonnegative : forall top (row : real_row) w, In w (weights top row) -> 0 <= w.
Proof.
  intros top row w among. apply in_map_iff in among. destruct among as [e [<- among]].
  apply exponentials_nonnegative in among. pose proof (divisor_positive top row).
  apply Rmult_le_pos; [exact among |]. left. apply Rinv_0_lt_compat. assumption.
Qed.

(** A blocked entry's weight is 0. *)
Theorem blocked_zero : forall top (row : real_row) j s,
  nth_error row j = Some (s, false) -> nth_error (weights top row) j = Some 0.
Proof.
  intros top row j s at_j. unfold weights, exponentials.
  rewrite map_map, (map_nth_error _ j row at_j). simpl. unfold Rdiv. rewrite Rmult_0_l. reflexivity.
Qed.

(** An allowed entry's weight is positive, and at most 1. *)
Theorem allowed_positive : forall top (row : real_row) j s,
  nth_error row j = Some (s, true) ->
  exists w, nth_error (weights top row) j = Some w /\ 0 < w <= 1.
Proof.
  intros top row j s at_j. exists (exp (s - top) / divisor top row). split.
  - unfold weights, exponentials. rewrite map_map, (map_nth_error _ j row at_j). reflexivity.
  - pose proof (divisor_positive top row) as positive. split.
    + apply Rmult_lt_0_compat; [apply exp_pos | apply Rinv_0_lt_compat; exact positive].
    + apply (Rmult_le_reg_r (divisor top row)); [exact positive |].
      replace (exp (s - top) / divisor top row * divisor top row) with (exp (s - top))
        by (field; lra).
      rewrite Rmult_1_l. unfold divisor. replace (seen row) with true.
      * clear positive. revert j at_j. induction row as [| [t a] row IH]; intros j at_j.
        { destruct j; discriminate. }
        destruct j as [| j]; simpl in at_j.
        { injection at_j as -> ->. pose proof (mass_nonnegative top row) as rest.
          simpl in *. lra. }
        { specialize (IH j at_j). simpl in *. destruct a; [pose proof (exp_pos (t - top)) |]; lra. }
      * symmetry. apply existsb_exists. exists (s, true).
        split; [exact (nth_error_In row j at_j) | reflexivity].
Qed.

(** [shifted c row] adds c to every score. *)
Definition shifted (c : R) (row : real_row) : real_row :=
  map (fun e : entry reals => (fst e + c : number reals, snd e)) row.

Lemma exponentials_shifted : forall c top other (row : real_row),
  exponentials top (shifted c row)
  = map (fun e => e * exp (c + other - top)) (exponentials other row).
Proof.
  intros c top other row; induction row as [| [s a] row IH]; simpl in *; [reflexivity |].
  rewrite IH. f_equal. destruct a; [| ring].
  rewrite <- exp_plus. f_equal. ring.
Qed.

Lemma seen_shifted : forall c (row : real_row), seen (shifted c row) = seen row.
Proof.
  intros c row; induction row as [| [s a] row IH]; simpl in *; [reflexivity |].
  rewrite IH. reflexivity.
Qed.

(** Adding a constant to the scores changes nothing, and neither does what is subtracted. *)
Theorem shift_invariant : forall c top other (row : real_row),
  weights top (shifted c row) = weights other row.
Proof.
  intros c top other row. pose proof (divisor_positive other row) as positive. revert positive.
  unfold weights, divisor.
  rewrite seen_shifted, (exponentials_shifted c top other), map_map, sum_scaled.
  destruct (seen row) eqn:some; intros positive.
  - apply map_ext. intros e. pose proof (exp_pos (c + other - top)). simpl. field.
    simpl in positive. lra.
  - rewrite (nothing_seen other row some), !map_map. apply map_ext. intros _. simpl. field.
Qed.

(** A single allowed entry among blocked ones has weight 1. *)
Theorem one_visible : forall top s (before after : real_row),
  seen before = false -> seen after = false ->
  weights top (before ++ (s, true) :: after)
  = map (fun _ => 0) before ++ 1 :: map (fun _ => 0) after.
Proof.
  intros top s before after none_before none_after.
  assert (parts : exponentials top (before ++ (s, true) :: after)
    = map (fun _ => 0) before ++ exp (s - top) :: map (fun _ => 0) after).
  { rewrite <- (nothing_seen top before none_before), <- (nothing_seen top after none_after).
    apply map_app. }
  assert (mass : sum (exponentials top (before ++ (s, true) :: after)) = exp (s - top)).
  { rewrite parts. clear. induction before as [| e before IH]; simpl in *.
    - induction after as [| e after IH]; simpl in *; lra.
    - rewrite IH. ring. }
  assert (some : seen (before ++ (s, true) :: after) = true).
  { unfold seen. rewrite existsb_app. apply Bool.orb_true_r. }
  unfold weights, divisor. rewrite some, mass, parts, map_app, map_cons, !map_map.
  pose proof (exp_pos (s - top)). f_equal; [| f_equal].
  - apply map_ext. intros _. simpl. field. lra.
  - simpl. field. lra.
  - apply map_ext. intros _. simpl. field. lra.
Qed.

(** Subtracting a finite penalty, however large, leaves a positive weight at the blocked entries. *)
Definition penalised (penalty : R) (row : real_row) : real_row :=
  map (fun e : entry reals =>
    ((if snd e then fst e else fst e - penalty) : number reals, true)) row.

Theorem penalty_leaks : forall penalty top (row : real_row) w,
  In w (weights top (penalised penalty row)) -> 0 < w.
Proof.
  intros penalty top row w among. apply In_nth_error in among. destruct among as [j at_j].
  destruct (nth_error (penalised penalty row) j) as [[s a] |] eqn:entry_j.
  - assert (allowed : a = true).
    { apply nth_error_In, in_map_iff in entry_j. destruct entry_j as [e [same _]]. congruence. }
    subst a. destruct (allowed_positive top _ _ _ entry_j) as [v [same bounds]].
    rewrite same in at_j. injection at_j as <-. lra.
  - apply nth_error_None in entry_j.
    assert (inside : (j < length (weights top (penalised penalty row)))%nat).
    { apply nth_error_Some. congruence. }
    unfold weights, exponentials in inside. rewrite !map_length in inside.
    exfalso. apply (Nat.lt_irrefl j). eapply Nat.lt_le_trans; eassumption.
Qed.
