// SPDX-License-Identifier: GPL-2.0-only
/* Objects of its own in a list and in a tree. Each program returns 0 if all is as the kernel has it. */
#include "kernel.h"

struct bpf_list_head { u64 hidden[2]; };
struct bpf_list_node { u64 hidden[3]; };
struct bpf_rb_root { u64 hidden[2]; };
struct bpf_rb_node { u64 hidden[4]; };
struct item { u64 number; struct bpf_list_node in_list; struct bpf_rb_node in_tree; };

KFUNC void *bpf_obj_new_impl(u64 type, void *meta);
KFUNC void bpf_obj_drop_impl(void *object, void *meta);
KFUNC void *bpf_refcount_acquire_impl(void *object, void *meta);
KFUNC int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node, void *meta, u64 off);
KFUNC int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node, void *meta, u64 off);
KFUNC struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head);
KFUNC struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *head);
KFUNC int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			      bool (less)(struct bpf_rb_node *a, const struct bpf_rb_node *b), void *meta, u64 off);
KFUNC struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root);
KFUNC struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node);

struct context { u64 argument; };
struct bpf_list_head list;
struct bpf_rb_root tree;

#define item_of(node, member) ((struct item *)((u64)(node) - __builtin_offsetof(struct item, member)))

static struct item *new_item(u64 number)
{
	struct item *item = bpf_obj_new_impl(__builtin_btf_type_id(*(struct item *)0, 0), 0);

	if (item)
		item->number = number;
	return item;
}

SEC("syscall") int in_list(struct context *ctx)
{
	struct item *one = new_item(1), *two = new_item(2);

	if (!one || !two || bpf_list_pop_front(&list))
		return 1;
	if (bpf_list_push_back_impl(&list, &one->in_list, 0, 0) || bpf_list_push_front_impl(&list, &two->in_list, 0, 0))
		return 2;
	if (bpf_list_push_back_impl(&list, &one->in_list, 0, 0) != -22)
		return 3;
	if (item_of(bpf_list_pop_front(&list), in_list)->number != 2 || item_of(bpf_list_pop_back(&list), in_list) != one)
		return 4;
	/* Two own it, so that the first drop frees nothing. */
	if (bpf_refcount_acquire_impl(one, 0) != one)
		return 5;
	bpf_obj_drop_impl(one, 0);
	bpf_obj_drop_impl(two, 0);
	if (new_item(3) != two || one->number != 1)
		return 6;
	bpf_obj_drop_impl(one, 0);
	bpf_obj_drop_impl(two, 0);
	return !!bpf_list_pop_back(&list);
}

static bool less(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	return item_of(a, in_tree)->number < item_of(b, in_tree)->number;
}

SEC("syscall") int in_tree(struct context *ctx)
{
	u64 numbers = 0x2713524, before = 0, count = 0;
	struct bpf_rb_node *node;
	struct item *item;

	for (; numbers; numbers >>= 4) {
		item = new_item(numbers & 15);
		if (!item || bpf_rbtree_add_impl(&tree, &item->in_tree, less, 0, 0))
			return 1;
		if (bpf_rbtree_add_impl(&tree, &item->in_tree, less, 0, 0) != -22)
			return 2;
	}
	while ((node = bpf_rbtree_first(&tree))) {
		if (bpf_rbtree_remove(&tree, node) != node || bpf_rbtree_remove(&tree, node))
			return 3;
		item = item_of(node, in_tree);
		if (item->number < before)
			return 4;
		before = item->number;
		count++;
		bpf_obj_drop_impl(item, 0);
	}
	return count != 7;
}

/* What was not allocated cannot be dropped. */
SEC("syscall") int dropped(struct context *ctx)
{
	bpf_obj_drop_impl(&list, 0);
	return 0;
}
