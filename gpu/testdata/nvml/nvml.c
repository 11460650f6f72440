/*
 * A fake libnvidia-ml.so.1: the functions of NVIDIA's management library that the telemetry helper
 * calls, answered from the text file that FAKE_NVML_STATE names. Read again whenever it changes.
 *
 *   cc -shared -fPIC -O1 -pthread -o libnvidia-ml.so.1 nvml.c
 *   -DOLD_DRIVER   leaves out what drivers before about R450 lack
 *
 * The file has one `key value` a line, # begins a comment. A value that is not there is
 * NOT_SUPPORTED, of a key that is there twice the later line counts, and no file at all is a host
 * without a loaded driver. For all:
 *
 *   driver 570.86.15      its version
 *   gpus 2                how many; as in the real library, seen at nvmlInit only
 *   init UNKNOWN          what nvmlInit returns instead of success, a name or number of nvmlReturn_t
 *   driver_lost 1         every call returns UNKNOWN, nvmlInit DRIVER_NOT_LOADED; a library that saw
 *                         it returns UNINITIALIZED afterwards, until shut down and initialised again
 *   hang 1                every call blocks until the line is gone
 *
 * For the GPU 0, and so for each:
 *
 *   0.uuid GPU-...  0.name NVIDIA H100 80GB HBM3  0.pci 00000000:07:00.0
 *   0.memory_total  0.memory_used  0.memory_reserved      bytes
 *   0.sm  0.mem                                           per cent
 *   0.power  0.power_limit                                watts
 *   0.temperature                                         degrees Celsius
 *   0.sm_clock  0.sm_clock_max  0.memory_clock  0.memory_clock_max   MHz
 *   0.throttle 0x40                                       clocks event reasons
 *   0.ecc  0.ecc_corrected                                errors since the driver was loaded
 *   0.xid 79                                              an event at each change to another than 0
 *   0.recovery 1                                          nvmlDeviceGpuRecoveryAction_t
 *   0.pcie_rx  0.pcie_tx                                  counters of bytes, 32 bits wide
 *   0.nvlink_rx  0.nvlink_tx                              counters of KiB
 *   0.mig 1                                               MIG is on: no utilisation
 *   0.mig_devices 1:0:MIG-...:TOTAL:USED,...              GPU instance, compute instance, UUID, bytes
 *   0.processes 1234:1073741824:55,1300:...               PID, bytes, SM per cent (-1: no sample)
 *   0.unsupported power,ecc,events                        keys that are NOT_SUPPORTED all the same
 *   0.lost 1                                              GPU_IS_LOST from every call
 *   0.error RESET_REQUIRED                                this from every call
 *   0.hang 1                                              every call blocks until the line is gone
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

/* nvmlReturn_t */
enum {
	SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4,
	NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, IRQ_ISSUE = 11,
	LIBRARY_NOT_FOUND = 12, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15, RESET_REQUIRED = 16,
	OPERATING_SYSTEM = 17, LIB_RM_VERSION_MISMATCH = 18, UNKNOWN = 999,
};
static const struct { const char *name; int code; } errors[] = {
	{"UNINITIALIZED", 1}, {"INVALID_ARGUMENT", 2}, {"NOT_SUPPORTED", 3}, {"NO_PERMISSION", 4},
	{"NOT_FOUND", 6}, {"INSUFFICIENT_SIZE", 7}, {"DRIVER_NOT_LOADED", 9}, {"TIMEOUT", 10},
	{"IRQ_ISSUE", 11}, {"LIBRARY_NOT_FOUND", 12}, {"FUNCTION_NOT_FOUND", 13}, {"GPU_IS_LOST", 15},
	{"RESET_REQUIRED", 16}, {"OPERATING_SYSTEM", 17}, {"LIB_RM_VERSION_MISMATCH", 18}, {"UNKNOWN", 999},
};

/* ---- the state file ---- */

enum { GPUS = 32, ENTRIES = 48, INSTANCES = 8, ALL = GPUS /* the row of lines that are no GPU's */ };

struct entry { char key[24], value[1000]; };
static struct row { int count; struct entry entries[ENTRIES]; } rows[GPUS + 1];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all that is static here */
static struct stat read_as; /* the file as rows has it */
static int have_file;
static int users, gpus, dead; /* calls of nvmlInit; GPUs and whether the driver was lost, since the first */

static void add(int row, const char *key, const char *value) {
	struct row *r = &rows[row];
	struct entry *e = r->entries;
	while (e < r->entries + r->count && strcmp(e->key, key)) e++;
	if (e == r->entries + ENTRIES) return;
	if (e == r->entries + r->count) r->count++;
	snprintf(e->key, sizeof e->key, "%s", key);
	snprintf(e->value, sizeof e->value, "%s", value);
}

static void refresh(void) {
	const char *path = getenv("FAKE_NVML_STATE");
	static struct timespec looked; /* once in 2 ms is enough: the cost of a poll is measured with this library */
	struct timespec t;
	struct stat now;
	clock_gettime(CLOCK_MONOTONIC, &t);
	if (have_file && (t.tv_sec - looked.tv_sec) * 1000000000L + t.tv_nsec - looked.tv_nsec < 2000000) return;
	looked = t;
	if (!path || stat(path, &now)) { have_file = 0; return; }
	if (have_file && now.st_ino == read_as.st_ino && now.st_size == read_as.st_size &&
	    now.st_mtim.tv_sec == read_as.st_mtim.tv_sec && now.st_mtim.tv_nsec == read_as.st_mtim.tv_nsec)
		return;
	FILE *f = fopen(path, "re");
	if (!f) { have_file = 0; return; }
	have_file = 1;
	read_as = now;
	for (int i = 0; i <= GPUS; i++) rows[i].count = 0;
	char line[1100];
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n#")] = 0;
		char key[32], value[1000];
		int gpu;
		if (sscanf(line, " %d.%31s %999[^\n]", &gpu, key, value) == 3) {
			if (gpu >= 0 && gpu < GPUS) add(gpu, key, value);
		} else if (sscanf(line, " %31s %999[^\n]", key, value) == 2) {
			add(ALL, key, value);
		}
	}
	fclose(f);
}

/* The value of a key, or NULL. The caller holds the lock for as long as it uses it. */
static const char *find(int row, const char *key) {
	for (int i = 0; i < rows[row].count; i++)
		if (!strcmp(rows[row].entries[i].key, key)) return rows[row].entries[i].value;
	return NULL;
}

static int is_set(int row, const char *key) {
	const char *v = find(row, key);
	return v && strcmp(v, "0");
}

static int error_named(const char *name) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (!strcmp(errors[i].name, name)) return errors[i].code;
	int code = atoi(name);
	return code ? code : UNKNOWN;
}

/* Whether the comma-separated list has the word. */
static int listed(const char *list, const char *word) {
	size_t n = strlen(word);
	while (list) {
		if (!strncmp(list, word, n) && (list[n] == ',' || list[n] == 0 || list[n] == ' ')) return 1;
		list = strchr(list, ',');
		if (list) list++;
	}
	return 0;
}

static void nap(void) { /* 5 ms, without the lock */
	struct timespec t = {0, 5000000};
	pthread_mutex_unlock(&lock);
	nanosleep(&t, NULL);
	pthread_mutex_lock(&lock);
}

/* ---- how each call begins and ends ---- */

/* A handle is the address of one of these. */
struct device { int gpu, instance; /* -1: the whole GPU */ };
static struct device devices[GPUS][INSTANCES + 1];

/* Takes the lock, waits while a hang is asked for, and returns the fault that this GPU has (ALL: none's). */
static int enter(int gpu) {
	pthread_mutex_lock(&lock);
	refresh();
	while (have_file && (is_set(ALL, "hang") || (gpu != ALL && is_set(gpu, "hang")))) {
		nap();
		refresh();
	}
	if (users && have_file && is_set(ALL, "driver_lost")) { dead = 1; return UNKNOWN; }
	if (!users || dead || !have_file) return UNINITIALIZED;
	if (gpu == ALL) return SUCCESS;
	if (gpu >= gpus) return INVALID_ARGUMENT;
	if (is_set(gpu, "lost")) return GPU_IS_LOST;
	if (is_set(gpu, "error")) return error_named(find(gpu, "error"));
	return SUCCESS;
}

static int leave(int result) {
	pthread_mutex_unlock(&lock);
	return result;
}

/* The value of a key of a GPU that is not switched off, or NULL. */
static const char *supported(int gpu, const char *key) {
	return listed(find(gpu, "unsupported"), key) ? NULL : find(gpu, key);
}

/* Enters, reads one number, leaves. */
static int number(struct device *d, const char *key, double scale, unsigned int *out) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	const char *v = supported(d->gpu, key);
	if (!v) return leave(NOT_SUPPORTED);
	*out = (unsigned int)(strtod(v, NULL) * scale + 0.5);
	return leave(SUCCESS);
}

static int number64(struct device *d, const char *key, unsigned long long *out) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	const char *v = supported(d->gpu, key);
	if (!v) return leave(NOT_SUPPORTED);
	*out = strtoull(v, NULL, 0);
	return leave(SUCCESS);
}

static int text(const char *from, char *to, unsigned int size) {
	if (strlen(from) >= size) return INSUFFICIENT_SIZE;
	strcpy(to, from);
	return SUCCESS;
}

static unsigned long long bytes(int gpu, const char *key) {
	const char *v = find(gpu, key);
	return v ? strtoull(v, NULL, 0) : 0;
}

/* ---- the library as a whole ---- */

int nvmlInit_v2(void) {
	enter(ALL);
	if (!have_file || is_set(ALL, "driver_lost")) return leave(DRIVER_NOT_LOADED);
	if (is_set(ALL, "init")) return leave(error_named(find(ALL, "init")));
	if (!users++) {
		const char *n = find(ALL, "gpus");
		gpus = n ? atoi(n) : 0;
		if (gpus > GPUS) gpus = GPUS;
		dead = 0;
		for (int g = 0; g < GPUS; g++)
			for (int i = 0; i <= INSTANCES; i++) devices[g][i] = (struct device){g, i - 1};
	}
	return leave(SUCCESS);
}
int nvmlInit(void) { return nvmlInit_v2(); }
int nvmlInitWithFlags(unsigned int flags) { (void)flags; return nvmlInit_v2(); }

int nvmlShutdown(void) {
	pthread_mutex_lock(&lock);
	if (!users) return leave(UNINITIALIZED);
	users--;
	return leave(SUCCESS);
}

const char *nvmlErrorString(int code) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code) return errors[i].name;
	return code ? "Unknown Error" : "Success";
}

int nvmlSystemGetDriverVersion(char *version, unsigned int size) {
	int r = enter(ALL);
	if (r) return leave(r);
	const char *v = find(ALL, "driver");
	return leave(v ? text(v, version, size) : NOT_SUPPORTED);
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
	int r = enter(ALL);
	if (!r) *count = (unsigned int)gpus;
	return leave(r);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct device **device) {
	if (index >= GPUS) return INVALID_ARGUMENT;
	int r = enter((int)index);
	if (!r) *device = &devices[index][0];
	return leave(r);
}

/* ---- who a GPU is ---- */

/* Field number `at` (from 0) of MIG device `index`, of those that 0.mig_devices lists; 0: there is none. */
static int mig_field(int gpu, int index, int at, char *out, size_t size) {
	const char *v = is_set(gpu, "mig") ? find(gpu, "mig_devices") : NULL;
	for (; v && index > 0; index--) if ((v = strchr(v, ','))) v++;
	if (!v || !*v) return 0;
	for (; at > 0; at--) {
		v += strcspn(v, ":,");
		if (*v++ != ':') return 0;
	}
	snprintf(out, size, "%.*s", (int)strcspn(v, ":, "), v);
	return 1;
}

static unsigned long long mig_number(struct device *d, int at) {
	char field[96];
	return mig_field(d->gpu, d->instance, at, field, sizeof field) ? strtoull(field, NULL, 0) : 0;
}

int nvmlDeviceGetUUID(struct device *d, char *uuid, unsigned int size) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	char made[96];
	const char *v = find(d->gpu, "uuid");
	if (d->instance >= 0) {
		if (!mig_field(d->gpu, d->instance, 2, made, sizeof made)) return leave(NOT_FOUND);
		v = made;
	} else if (!v) {
		snprintf(made, sizeof made, "GPU-00000000-0000-0000-0000-%012d", d->gpu);
		v = made;
	}
	return leave(text(v, uuid, size));
}

int nvmlDeviceGetName(struct device *d, char *name, unsigned int size) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	const char *v = find(d->gpu, "name");
	return leave(text(v ? v : "Fake GPU", name, size));
}

struct pci { char legacy[16]; unsigned int domain, bus, device, id, subsystem; char bus_id[32]; };

int nvmlDeviceGetPciInfo_v3(struct device *d, struct pci *pci) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	memset(pci, 0, sizeof *pci);
	pci->bus = (unsigned int)d->gpu + 1;
	const char *v = find(d->gpu, "pci");
	if (v) {
		sscanf(v, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
		snprintf(pci->bus_id, sizeof pci->bus_id, "%s", v);
	} else {
		snprintf(pci->bus_id, sizeof pci->bus_id, "%08x:%02x:00.0", pci->domain, pci->bus);
	}
	return leave(SUCCESS);
}
int nvmlDeviceGetPciInfo(struct device *d, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(d, pci); }
int nvmlDeviceGetPciInfo_v2(struct device *d, struct pci *pci) { return nvmlDeviceGetPciInfo_v3(d, pci); }

/* ---- its figures ---- */

struct memory { unsigned long long total, free, used; }; /* used with what is reserved */
struct memory_v2 { unsigned int version; unsigned long long total, reserved, free, used; };

static int memory(struct device *d, struct memory_v2 *m) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	m->reserved = 0;
	if (d->instance >= 0) {
		char field[96];
		if (!mig_field(d->gpu, d->instance, 0, field, sizeof field)) return leave(NOT_FOUND); /* destroyed */
		m->total = mig_number(d, 3);
		m->used = mig_number(d, 4);
	} else {
		if (!supported(d->gpu, "memory_total")) return leave(NOT_SUPPORTED);
		m->total = bytes(d->gpu, "memory_total");
		m->used = bytes(d->gpu, "memory_used");
		m->reserved = bytes(d->gpu, "memory_reserved");
	}
	m->free = m->total - m->used - m->reserved;
	return leave(SUCCESS);
}

int nvmlDeviceGetMemoryInfo(struct device *d, struct memory *out) {
	struct memory_v2 m;
	int r = memory(d, &m);
	if (!r) *out = (struct memory){m.total, m.free, m.used + m.reserved};
	return r;
}

struct utilization { unsigned int gpu, memory; };

int nvmlDeviceGetUtilizationRates(struct device *d, struct utilization *u) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	const char *sm = supported(d->gpu, "sm"), *mem = supported(d->gpu, "mem");
	if (is_set(d->gpu, "mig") || !sm) return leave(NOT_SUPPORTED);
	*u = (struct utilization){(unsigned int)atoi(sm), mem ? (unsigned int)atoi(mem) : 0};
	return leave(SUCCESS);
}

int nvmlDeviceGetPowerUsage(struct device *d, unsigned int *milliwatts) { return number(d, "power", 1000, milliwatts); }
int nvmlDeviceGetEnforcedPowerLimit(struct device *d, unsigned int *milliwatts) { return number(d, "power_limit", 1000, milliwatts); }
int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned int *degrees) { (void)sensor; return number(d, "temperature", 1, degrees); }

enum { CLOCK_SM = 1, CLOCK_MEM = 2 };
int nvmlDeviceGetClockInfo(struct device *d, int type, unsigned int *mhz) {
	return number(d, type == CLOCK_MEM ? "memory_clock" : "sm_clock", 1, mhz);
}
int nvmlDeviceGetMaxClockInfo(struct device *d, int type, unsigned int *mhz) {
	return number(d, type == CLOCK_MEM ? "memory_clock_max" : "sm_clock_max", 1, mhz);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *d, unsigned long long *reasons) { return number64(d, "throttle", reasons); }

int nvmlDeviceGetTotalEccErrors(struct device *d, int uncorrected, int counter, unsigned long long *count) {
	(void)counter;
	return number64(d, uncorrected ? "ecc" : "ecc_corrected", count);
}

/* ---- processes ---- */

struct process_v1 { unsigned int pid; unsigned long long memory; };
struct process { unsigned int pid; unsigned long long memory; unsigned int gpu_instance, compute_instance; };
struct sample { unsigned int pid; unsigned long long microseconds; unsigned int sm, mem, enc, dec; };

/* The next pid:bytes:sm of the list, or 0 at its end. */
static int next_process(const char **list, unsigned int *pid, unsigned long long *memory, int *sm) {
	if (!*list || !**list) return 0;
	*memory = 0;
	*sm = -1;
	int n = sscanf(*list, " %u:%llu:%d", pid, memory, sm);
	*list = strchr(*list, ',');
	if (*list) (*list)++;
	return n >= 1;
}

/* Fills v1 or v2; both NULL is not asked for. */
static int processes(struct device *d, unsigned int *count, struct process_v1 *v1, struct process *v2) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	const char *list = supported(d->gpu, "processes");
	if (!list) return leave(NOT_SUPPORTED);
	unsigned int pid, n = 0;
	unsigned long long used;
	int sm;
	for (; next_process(&list, &pid, &used, &sm); n++) {
		if (n >= *count) continue;
		if (v1) v1[n] = (struct process_v1){pid, used};
		if (v2) v2[n] = (struct process){pid, used, 0xFFFFFFFF, 0xFFFFFFFF};
	}
	r = n > *count ? INSUFFICIENT_SIZE : SUCCESS;
	*count = n;
	return leave(r);
}

int nvmlDeviceGetComputeRunningProcesses(struct device *d, unsigned int *n, struct process_v1 *out) { return processes(d, n, out, NULL); }

int nvmlDeviceGetGraphicsRunningProcesses(struct device *d, unsigned int *n, struct process_v1 *out) {
	(void)out;
	*n = 0;
	return leave(enter(d->gpu));
}

/* ---- events ---- */

enum { EVENT_XID = 8 };
struct event { struct device *device; unsigned long long type, data; unsigned int gpu_instance, compute_instance; };
struct event_set { char registered[GPUS]; unsigned long long seen[GPUS]; };

int nvmlEventSetCreate(struct event_set **set) {
	int r = enter(ALL);
	if (!r && !(*set = calloc(1, sizeof **set))) r = UNKNOWN;
	return leave(r);
}

int nvmlEventSetFree(struct event_set *set) {
	free(set);
	return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(struct device *d, unsigned long long *types) {
	int r = enter(d->gpu);
	if (!r) *types = listed(find(d->gpu, "unsupported"), "events") ? 0 : EVENT_XID;
	return leave(r);
}

int nvmlDeviceRegisterEvents(struct device *d, unsigned long long types, struct event_set *set) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	if (types & ~(unsigned long long)EVENT_XID || listed(find(d->gpu, "unsupported"), "events")) return leave(NOT_SUPPORTED);
	set->registered[d->gpu] = 1;
	set->seen[d->gpu] = bytes(d->gpu, "xid");
	return leave(SUCCESS);
}

int nvmlEventSetWait(struct event_set *set, struct event *event, unsigned int milliseconds) {
	int r = enter(ALL);
	for (unsigned int waited = 0; !r; waited += 100) {
		for (int g = 0; g < gpus; g++) {
			unsigned long long xid = bytes(g, "xid"), before = set->seen[g];
			set->seen[g] = xid;
			if (!set->registered[g] || xid == before || !xid) continue;
			*event = (struct event){&devices[g][0], EVENT_XID, xid, 0xFFFFFFFF, 0xFFFFFFFF};
			return leave(SUCCESS);
		}
		if (waited >= milliseconds) return leave(TIMEOUT);
		pthread_mutex_unlock(&lock);
		struct timespec t = {0, 100000000};
		nanosleep(&t, NULL);
		r = enter(ALL);
	}
	return leave(r);
}

/* ---- what newer drivers have ---- */
#ifndef OLD_DRIVER

int nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory_v2 *out) { return memory(d, out); }

struct temperature { unsigned int version; int sensor, degrees; };
int nvmlDeviceGetTemperatureV(struct device *d, struct temperature *t) { return number(d, "temperature", 1, (unsigned int *)&t->degrees); }

int nvmlDeviceGetCurrentClocksEventReasons(struct device *d, unsigned long long *reasons) { return number64(d, "throttle", reasons); }

int nvmlDeviceGetComputeRunningProcesses_v2(struct device *d, unsigned int *n, struct process *out) { return processes(d, n, NULL, out); }
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned int *n, struct process *out) { return processes(d, n, NULL, out); }
int nvmlDeviceGetGraphicsRunningProcesses_v2(struct device *d, unsigned int *n, struct process *out) { return nvmlDeviceGetGraphicsRunningProcesses(d, n, (void *)out); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct device *d, unsigned int *n, struct process *out) { return nvmlDeviceGetGraphicsRunningProcesses(d, n, (void *)out); }

/* One sample of each busy process, taken just now; it gives the size first, as the real one. */
int nvmlDeviceGetProcessUtilization(struct device *d, struct sample *out, unsigned int *count, unsigned long long since) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	const char *list = supported(d->gpu, "processes");
	if (!list || is_set(d->gpu, "mig") || listed(find(d->gpu, "unsupported"), "process_utilization")) return leave(NOT_SUPPORTED);
	struct timeval t;
	gettimeofday(&t, NULL);
	unsigned long long used, now = (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_usec;
	unsigned int pid, n = 0;
	int sm;
	while (next_process(&list, &pid, &used, &sm)) {
		if (sm <= 0 || now <= since) continue;
		if (out && n < *count) out[n] = (struct sample){pid, now, (unsigned int)sm, 0, 0, 0};
		n++;
	}
	r = n == 0 ? NOT_FOUND : !out || n > *count ? INSUFFICIENT_SIZE : SUCCESS;
	*count = n;
	return leave(r);
}

enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3 }; /* nvmlValueType_t */
struct field {
	unsigned int id, scope;
	long long timestamp, latency;
	int type, result;
	union { unsigned int u; unsigned long long ull; } value;
};

int nvmlDeviceGetFieldValues(struct device *d, int count, struct field *fields) {
	static const struct { unsigned int id; const char *key; } known[] = {
		{138, "nvlink_tx"}, {139, "nvlink_rx"}, {197, "pcie_tx"}, {198, "pcie_rx"}, {186, "power"}, {230, "recovery"},
	};
	int r = enter(d->gpu);
	if (r) return leave(r);
	struct timeval t;
	gettimeofday(&t, NULL);
	for (struct field *f = fields; f < fields + count; f++) {
		const char *v = NULL;
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			if (known[i].id == f->id) v = supported(d->gpu, known[i].key);
		f->timestamp = (long long)t.tv_sec * 1000000 + t.tv_usec;
		f->result = v ? SUCCESS : NOT_SUPPORTED;
		if (!v) continue;
		f->type = f->id >= 186 ? UNSIGNED_INT : UNSIGNED_LONG_LONG;
		f->value.ull = f->id == 186 ? (unsigned long long)(strtod(v, NULL) * 1000 + 0.5) : strtoull(v, NULL, 0);
		if (f->type == UNSIGNED_INT) f->value.u = (unsigned int)f->value.ull;
	}
	return leave(SUCCESS);
}

int nvmlEventSetWait_v2(struct event_set *set, struct event *event, unsigned int milliseconds) { return nvmlEventSetWait(set, event, milliseconds); }

int nvmlDeviceGetMigMode(struct device *d, unsigned int *current, unsigned int *pending) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	if (!supported(d->gpu, "mig")) return leave(NOT_SUPPORTED);
	*current = *pending = (unsigned int)is_set(d->gpu, "mig");
	return leave(SUCCESS);
}

int nvmlDeviceGetMaxMigDeviceCount(struct device *d, unsigned int *count) {
	int r = enter(d->gpu);
	if (!r) *count = supported(d->gpu, "mig") ? INSTANCES : 0;
	return leave(r);
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, unsigned int index, struct device **device) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	char field[96];
	if (index >= INSTANCES || !mig_field(d->gpu, (int)index, 0, field, sizeof field)) return leave(NOT_FOUND);
	*device = &devices[d->gpu][index + 1];
	return leave(SUCCESS);
}

static int instance_id(struct device *d, int at, unsigned int *id) {
	int r = enter(d->gpu);
	if (r) return leave(r);
	if (d->instance < 0) return leave(NOT_SUPPORTED);
	*id = (unsigned int)mig_number(d, at);
	return leave(SUCCESS);
}
int nvmlDeviceGetGpuInstanceId(struct device *d, unsigned int *id) { return instance_id(d, 0, id); }
int nvmlDeviceGetComputeInstanceId(struct device *d, unsigned int *id) { return instance_id(d, 1, id); }

#endif
