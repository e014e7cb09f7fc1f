/* SPDX-License-Identifier: BSD-3-Clause */
/* ompi_by_lib.c - ompi_check as a library, of which this program says all that it says of MPI */
int check_main(int argc, char **argv); /* main of ompi_check.c, built with that name */

int main(int argc, char **argv)
{
    return check_main(argc, argv);
}
