(** The softmax gradient: d_j = w_j (g_j - sum_k g_k w_k) where j is allowed, 0 where it is not. *)

From Coq Require Import List Reals Lra.
From Assay Require Import Softmax.
Import ListNotations.

Section Definitions.

Variable K : arithmetic.

(** One entry: its weight, its cotangent, and whether it is allowed. *)
Definition triple := (number K * number K * bool)%type.

Definition seen_cotangent (t : triple) : number K :=
  let '(_, g, allowed) := t in if allowed then g else zero K.

Definition product (t : triple) : number K := let '(w, _, _) := t in mul K (seen_cotangent t) w.

Definition dot (row : list triple) : number K := sum (map product row).

Definition gradient_at (d : number K) (t : triple) : number K :=
  let '(w, _, allowed) := t in
  if allowed then mul K w (sub K (seen_cotangent t) d) else zero K.

Definition softmax_backward (row : list triple) : list (number K) :=
  map (gradient_at (dot row)) row.

(** The gradient into a blocked score is 0, in any arithmetic and whatever the cotangents are. *)
Theorem grad_blocked_zero : forall row j w g,
  nth_error row j = Some (w, g, false) -> nth_error (softmax_backward row) j = Some (zero K).
Proof.
  intros row j w g at_j. unfold softmax_backward. rewrite (map_nth_error _ j row at_j). reflexivity.
Qed.

End Definitions.

Arguments dot {K} row.
Arguments softmax_backward {K} row.

Local Open Scope R_scope.

(** Entries of a row with the weights that the softmax gives it, and any cotangents. *)
Definition triples (top : R) (row : list (entry reals)) (gs : list R) : list (triple reals) :=
  combine (combine (weights top row) gs) (map snd row).

(** A weight of 0 has a gradient of 0 over the reals, masked or not. *)
Theorem zero_weight_zero_gradient : forall (row : list (triple reals)) j g a,
  nth_error row j = Some ((0 : number reals), g, a) ->
  nth_error (softmax_backward row) j = Some (0 : number reals).
Proof.
  intros row j g a at_j. unfold softmax_backward. rewrite (map_nth_error _ j row at_j).
  simpl. destruct a; [rewrite Rmult_0_l |]; reflexivity.
Qed.

Fixpoint allowed_mass (row : list (triple reals)) : R :=
  match row with
  | [] => 0
  | (w, _, a) :: rest => (if a then w else 0) + allowed_mass rest
  end.

Lemma gradient_total : forall d (row : list (triple reals)),
  sum (map (gradient_at reals d) row) = dot row - d * allowed_mass row.
Proof.
  intros d row; induction row as [| [[w g] a] row IH].
  - unfold dot. simpl. ring.
  - unfold dot, sum in *. simpl in *. rewrite IH. destruct a; simpl; ring.
Qed.

Lemma allowed_mass_of_softmax : forall top (row : list (entry reals)) gs,
  length gs = length row -> allowed_mass (triples top row gs) = sum (weights top row).
Proof.
  intros top row. unfold triples, weights. generalize (divisor top row) as d. intros d.
  induction row as [| [s a] row IH]; intros [| g gs] size; simpl in *; try discriminate.
  - reflexivity.
  - injection size as size. rewrite (IH gs size). destruct a; [reflexivity |].
    unfold Rdiv. ring.
Qed.

Lemma dot_of_nothing_seen : forall top (row : list (entry reals)) gs,
  seen row = false -> dot (triples top row gs) = 0.
Proof.
  intros top row gs none. unfold dot, triples, weights. generalize (divisor top row) as d. intros d.
  revert gs. induction row as [| [s a] row IH]; intros [| g gs]; simpl in *; try reflexivity.
  apply Bool.orb_false_elim in none. destruct none as [blocked rest]. simpl in blocked. subst a.
  rewrite (IH rest gs). ring.
Qed.

(** The gradient sums to 0 along the row, whatever the mask and the cotangents. *)
Theorem grad_sums_zero : forall top (row : list (entry reals)) gs,
  length gs = length row -> sum (softmax_backward (triples top row gs)) = 0.
Proof.
  intros top row gs size. unfold softmax_backward.
  rewrite gradient_total, (allowed_mass_of_softmax top row gs size), row_sum.
  destruct (seen row) eqn:some; [real_ring |].
  rewrite (dot_of_nothing_seen top row gs some). real_ring.
Qed.

(** ** The formula is the derivative *)

(** Scores with masks, and the direction in which each score moves. *)
Definition ray := list (entry reals * R).

Definition at_time (t : R) (r : ray) : list (entry reals) :=
  map (fun p => ((fst (fst p) + t * snd p : number reals), snd (fst p))) r.

Lemma exp_moves : forall s v c, derivable_pt_lim (fun t => exp (s + t * v - c)) 0 (exp (s - c) * v).
Proof.
  intros s v c.
  assert (line : derivable_pt_lim (fun t => s + t * v - c) 0 v).
  { intros eps positive. exists (mkposreal 1 Rlt_0_1). intros h nonzero _.
    replace ((s + (0 + h) * v - c - (s + 0 * v - c)) / h - v) with 0 by (field; exact nonzero).
    rewrite Rabs_R0. exact positive. }
  pose proof (derivable_pt_lim_comp _ exp 0 v _ line (derivable_pt_lim_exp _)) as chain.
  replace (s + 0 * v - c) with (s - c) in chain by ring. exact chain.
Qed.

Definition slope (c : R) (p : entry reals * R) : R :=
  if snd (fst p) then exp (fst (fst p) - c) * snd p else 0.

Definition height (c t : R) (p : entry reals * R) : R :=
  if snd (fst p) then exp (fst (fst p) + t * snd p - c) else 0.

Lemma height_moves : forall c p, derivable_pt_lim (fun t => height c t p) 0 (slope c p).
Proof.
  intros c [[s a] v]. unfold height, slope; simpl. destruct a; [apply exp_moves |].
  apply (derivable_pt_lim_const 0).
Qed.

Lemma heights : forall c t (r : ray), exponentials c (at_time t r) = map (height c t) r.
Proof.
  intros. unfold exponentials, at_time. rewrite map_map. apply map_ext.
  intros [[s a] v]. reflexivity.
Qed.

Lemma mass_moves : forall c (r : ray),
  derivable_pt_lim (fun t => sum (exponentials c (at_time t r))) 0
    (sum (K := reals) (map (slope c) r)).
Proof.
  intros c r. induction r as [| p r IH].
  - apply (derivable_pt_lim_const 0).
  - apply (derivable_pt_lim_ext
      ((fun t => height c t p) + (fun t => sum (exponentials c (at_time t r))))%F).
    + intros t. destruct p as [[s a] v]. reflexivity.
    + exact (derivable_pt_lim_plus _ _ _ _ _ (height_moves c p) IH).
Qed.

Lemma seen_at_time : forall t (r : ray), seen (at_time t r) = seen (map fst r).
Proof.
  intros t r. unfold seen, at_time. induction r as [| p r IH]; simpl in *; [reflexivity |].
  rewrite IH. reflexivity.
Qed.

Lemma at_start : forall (r : ray), at_time 0 r = map fst r.
Proof.
  intros r. rewrite <- (map_id (map fst r)), map_map. apply map_ext. intros [[s a] v]. simpl.
  f_equal. ring.
Qed.

(** The products that the gradient sums are the slopes, over the mass. *)
Lemma dot_of_slopes : forall c d (r : ray),
  sum (map (product reals) (combine
    (combine (map (fun e => div reals e d) (exponentials c (map fst r))) (map snd r))
    (map snd (map fst r))))
  = sum (K := reals) (map (slope c) r) / d.
Proof.
  intros c d r. induction r as [| [[s a] v] r IH]; simpl in *; [unfold Rdiv; ring |].
  rewrite IH. unfold slope; simpl. destruct a; unfold Rdiv; ring.
Qed.

Lemma nth_backward : forall d c (r : ray) j s v,
  nth_error r j = Some ((s, true), v) ->
  nth_error (softmax_backward (combine
    (combine (map (fun e => div reals e d) (exponentials c (map fst r))) (map snd r))
    (map snd (map fst r)))) j
  = Some (exp (s - c) / d * (v - sum (K := reals) (map (slope c) r) / d) : number reals).
Proof.
  intros d c r j s v at_j. unfold softmax_backward, dot. rewrite dot_of_slopes.
  set (total := sum (map (slope c) r) / d). clearbody total.
  revert j at_j. induction r as [| [[t a] u] r IH]; intros [| j] at_j; simpl in *; try discriminate.
  - injection at_j as -> -> ->. reflexivity.
  - apply IH. exact at_j.
Qed.

(** Moving the scores along any direction, the weight of an allowed entry moves at the rate that
    [softmax_backward] computes from that direction. (A blocked weight stays 0, at rate 0.) The
    Jacobian is symmetric, so that the same expression is the gradient. *)
Theorem backward_is_derivative : forall c (r : ray) j s v,
  nth_error r j = Some ((s, true), v) ->
  exists rate,
    nth_error (softmax_backward (triples c (map fst r) (map snd r))) j = Some rate
    /\ derivable_pt_lim (fun t => nth j (weights c (at_time t r)) (0 : number reals)) 0 rate.
Proof.
  intros c r j s v at_j. unfold triples, weights at 1.
  exists (exp (s - c) / divisor c (map fst r)
    * (v - sum (K := reals) (map (slope c) r) / divisor c (map fst r))).
  split; [apply nth_backward, at_j |].
  assert (found : seen (map fst r) = true).
  { apply existsb_exists. exists (s, true). split; [| reflexivity].
    exact (in_map fst r _ (nth_error_In r j at_j)). }
  unfold divisor. rewrite found.
  pose proof (mass_positive c _ found) as positive.
  apply (derivable_pt_lim_ext
    ((fun t => height c t ((s, true), v)) / (fun t => sum (exponentials c (at_time t r))))%F).
  - intros t. unfold div_fct, weights, divisor. rewrite seen_at_time, found, heights. symmetry.
    apply nth_error_nth. rewrite map_map.
    apply (map_nth_error (fun p => height c t p / sum (map (height c t) r)) _ _ at_j).
  - pose proof (derivable_pt_lim_div _ _ 0 _ _ (height_moves c ((s, true), v)) (mass_moves c r))
      as quotient.
    cbv beta in quotient. rewrite at_start in quotient.
    unfold height, slope at 1 in quotient. simpl in quotient.
    replace (s + 0 * v - c) with (s - c) in quotient by ring.
    simpl in positive. unfold Rsqr in quotient.
    match type of quotient with _ -> derivable_pt_lim _ _ ?l =>
      match goal with |- derivable_pt_lim _ _ ?rate => replace rate with l end end.
    + apply quotient. simpl. lra.
    + simpl. field. lra.
Qed.
