"""What people run by hand or through make: generators of files that follow from code. No part of the wheel."""
