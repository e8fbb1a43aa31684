/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's file: made whole under a name of our own and linked into place, so that nobody ever sees
 * half of one, or the one that somebody else was faster with. Anything odd about it is refused.
 */
#define _GNU_SOURCE
#include "local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void complain(const char *what, const char *where)
{
	char line[512];
	int length = snprintf(line, sizeof(line), "modelprobe-chaos: %.300s: %.160s\n", where, what);

	if (write(2, line, (size_t)length) < 0)
		return; /* nobody listens */
}

/* fstat by number: the name is of a libc newer than those we run on, the structure is the same. */
static const char *odd(int file)
{
	struct stat is;

	if (syscall(SYS_fstat, file, &is))
		return "cannot be looked at; faults stay off";
	if (!S_ISREG(is.st_mode))
		return "is no regular file; remove it, faults stay off until then";
	if ((is.st_mode & 07777) != 0600)
		return "has another mode than 0600; remove it, faults stay off until then";
	if (is.st_uid != geteuid() && is.st_uid)
		return "belongs to somebody else; remove it, faults stay off until then";
	if (is.st_size != PAGE_SIZE)
		return "has another size than a page of this version; remove it, faults stay off until then";
	return 0;
}

static void make(const char *path)
{
	static struct page fresh = { .magic = PAGE_MAGIC, .version = PAGE_VERSION, .size = PAGE_SIZE };
	char name[4096];
	int file;

	if (snprintf(name, sizeof(name), "%s.%d.new", path, (int)getpid()) >= (int)sizeof(name))
		return;
	unlink(name); /* of a process that had our number and did not get far */
	file = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		return;
	/* If it cannot be linked there is one by now, or the opening that follows says that there is none. */
	if (!fchmod(file, 0600) && write(file, &fresh, sizeof(fresh)) == (ssize_t)sizeof(fresh))
		link(name, path);
	close(file);
	unlink(name);
}

static struct page *map(int file, const char **why)
{
	struct page *found = mmap(0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (found == MAP_FAILED) {
		*why = "cannot be mapped; faults stay off";
		return 0;
	}
	if (found->magic == PAGE_MAGIC && found->version == PAGE_VERSION && found->size == PAGE_SIZE)
		return found;
	munmap(found, PAGE_SIZE);
	*why = "is no page of this version; remove it, faults stay off until then";
	return 0;
}

/* Without O_NONBLOCK the opening of a pipe could wait for ever. */
static int open_file(const char *path)
{
	return open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

struct page *page_open(const char *path)
{
	struct page *found = 0;
	const char *why = 0;
	int file;

	if (*path != '/') {
		complain("is no absolute path; faults stay off", path);
		return 0;
	}
	file = open_file(path);
	if (file < 0 && errno == ENOENT) {
		make(path);
		file = open_file(path);
	}
	if (file < 0) {
		complain(errno == ELOOP ? "is a symbolic link; remove it, faults stay off until then" :
			 "cannot be made or opened (a folder that is there and has hard links? the right user?); faults stay off", path);
		return 0;
	}
	why = odd(file);
	if (!why)
		found = map(file, &why);
	if (!found)
		complain(why, path);
	close(file);
	return found;
}
