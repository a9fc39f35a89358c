(** Parallel scans: an associative operation may be bracketed in any way.

    [op earlier later] combines two neighbouring pieces. A tree stands for one way to bracket a
    sequence, so a theorem about all trees is about every parallel schedule. *)

From Coq Require Import List.
Import ListNotations.

Section Trees.

Variable A : Type.
Variable op : A -> A -> A.
Hypothesis associative : forall a b c, op (op a b) c = op a (op b c).

Inductive tree := Leaf (a : A) | Node (left right : tree).

Fixpoint leaves (t : tree) : list A :=
  match t with Leaf a => [a] | Node l r => leaves l ++ leaves r end.

(** The up-sweep: combine the two halves at every node. *)
Fixpoint fold_tree (t : tree) : A :=
  match t with Leaf a => a | Node l r => op (fold_tree l) (fold_tree r) end.

(** From the left, starting from a carry: first c op a0, then (c op a0) op a1, and so on. *)
Fixpoint inclusive (carry : A) (xs : list A) : list A :=
  match xs with [] => [] | a :: rest => op carry a :: inclusive (op carry a) rest end.

(** The down-sweep of Blelloch's scan: what lies to the left of a subtree is carried into it. *)
Fixpoint down_sweep (carry : A) (t : tree) : list A :=
  match t with
  | Leaf a => [op carry a]
  | Node l r => down_sweep carry l ++ down_sweep (op carry (fold_tree l)) r
  end.

(** All prefixes of one chunk, which does not know its carry. *)
Definition local_scan (xs : list A) : list A :=
  match xs with [] => [] | a :: rest => a :: inclusive a rest end.

(** Scan each chunk on its own, then apply the carry to it, and hand the carry on. *)
Fixpoint scan_chunks (carry : A) (chunks : list (list A)) : list A :=
  match chunks with
  | [] => []
  | chunk :: rest =>
      map (op carry) (local_scan chunk) ++ scan_chunks (fold_left op chunk carry) rest
  end.

Lemma fold_from : forall xs a b, fold_left op xs (op a b) = op a (fold_left op xs b).
Proof.
  induction xs as [| x xs IH]; intros a b; simpl; [reflexivity |].
  rewrite associative. apply IH.
Qed.

Lemma fold_leaves : forall t c, fold_left op (leaves t) c = op c (fold_tree t).
Proof.
  induction t as [a | l IHl r IHr]; intros c; simpl; [reflexivity |].
  rewrite fold_left_app, IHl, IHr. apply associative.
Qed.

Lemma inclusive_app : forall xs ys c,
  inclusive c (xs ++ ys) = inclusive c xs ++ inclusive (fold_left op xs c) ys.
Proof.
  induction xs as [| x xs IH]; intros ys c; simpl; [reflexivity |].
  rewrite IH. reflexivity.
Qed.

(** The total of a tree, after any carry, is the sequential total of its leaves. *)
Theorem tree_equals_sequential : forall t c, op c (fold_tree t) = fold_left op (leaves t) c.
Proof. intros. symmetry. apply fold_leaves. Qed.

(** Two bracketings of one sequence have the same total. *)
Theorem bracketing_is_irrelevant : forall s t, leaves s = leaves t -> fold_tree s = fold_tree t.
Proof.
  assert (total : forall t, match leaves t with
                            | [] => False
                            | a :: rest => fold_tree t = fold_left op rest a
                            end).
  { induction t as [a | l IHl r IHr]; simpl; [reflexivity |].
    destruct (leaves l) as [| a left]; [contradiction |]. simpl.
    rewrite fold_left_app, <- IHl. symmetry. apply fold_leaves. }
  intros s t same. pose proof (total s) as first. pose proof (total t) as second.
  rewrite same in first. destruct (leaves t); [contradiction |]. rewrite first, second. reflexivity.
Qed.

(** Blelloch's up-sweep and down-sweep compute every prefix of the sequential scan. *)
Theorem blelloch_equals_sequential : forall t c, down_sweep c t = inclusive c (leaves t).
Proof.
  induction t as [a | l IHl r IHr]; intros c; simpl; [reflexivity |].
  rewrite inclusive_app, fold_leaves, IHl, IHr. reflexivity.
Qed.

(** Scanning chunk by chunk, in chunks of any lengths, is the sequential scan. *)
Theorem chunks_equal_sequential : forall chunks c,
  scan_chunks c chunks = inclusive c (concat chunks).
Proof.
  assert (carried : forall xs c, map (op c) (local_scan xs) = inclusive c xs).
  { assert (below : forall xs b c, map (op c) (inclusive b xs) = inclusive (op c b) xs).
    { induction xs as [| x xs IH]; intros b c; simpl; [reflexivity |].
      rewrite IH, associative. reflexivity. }
    destruct xs as [| x xs]; intros c; simpl; [reflexivity |]. rewrite below. reflexivity. }
  induction chunks as [| chunk rest IH]; intros c; simpl; [reflexivity |].
  rewrite inclusive_app, carried, IH. reflexivity.
Qed.

End Trees.

Arguments Leaf {A} a.
Arguments Node {A} left right.
